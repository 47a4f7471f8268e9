"""Occurrences per second beside croniter, cronsim and croniter-rs, and the cost of the guard and of counting a year.

All run in this one process, on the same pattern, zone, start and number of occurrences, each several times in turn; the
best time of each counts. croniter and cronsim give one aware `datetime` an occurrence, croniter-rs a naive one, for it
drops the zone; ours gives the whole occurrence: aware instant, the local times it stands for, and what the rule did.

    .venv/bin/python bench/occurrences.py
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from croniter_rs import croniter as croniter_rs
from cronsim import CronSim
from rich.console import Console
from rich.table import Table

from domain.cron import parse
from domain.errors import Invalid
from domain.occurrences import Occurrence, check_interval, iterate, survey
from domain.zones import load

ZONE = "America/New_York"
START = datetime(2026, 12, 1, tzinfo=UTC)
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Load:
    """A pattern, how many occurrences to take at a time, and how many times to take them in one measurement."""

    name: str
    expr: str
    count: int
    times: int


# The dense load crosses a clock change; the sparse ones go on to near the year 2200.
LOADS = (
    Load("dense", "*/5 * * * *", 40_000, 1),
    Load("daily", "0 9 * * *", 10_000, 1),
    Load("sparse", "0 9 1 1 *", 150, 20),
    Load("leap", "0 9 29 2 *", 40, 20),
)


def _ours(expr: str) -> Iterator[Occurrence]:
    return iterate(parse(expr), load(ZONE), START)


def _theirs(library: Any) -> Callable[[str], Iterator[Any]]:
    start = START.astimezone(ZoneInfo(ZONE))
    if library is CronSim:
        return lambda expr: CronSim(expr, start)
    return lambda expr: library(expr, start, ret_type=datetime)


CONTENDERS: dict[str, Callable[[str], Iterator[Any]]] = {
    "almanac": _ours,
    "croniter": _theirs(croniter),
    "cronsim": _theirs(CronSim),
    "croniter-rs": _theirs(croniter_rs),
}


def _seconds(series: Callable[[str], Iterator[Any]], case: Load) -> float:
    begun = perf_counter()
    for _ in range(case.times):
        taken = sum(1 for _ in islice(series(case.expr), case.count))
        assert taken == case.count, f"{case.expr}: {taken} of {case.count}"
    return perf_counter() - begun


def _rates(case: Load) -> dict[str, float]:
    """Occurrences per second, by contender."""
    best = dict.fromkeys(CONTENDERS, float("inf"))
    for _ in range(ROUNDS):
        for name, series in CONTENDERS.items():
            best[name] = min(best[name], _seconds(series, case))
    return {name: case.count * case.times / seconds for name, seconds in best.items()}


def _check_agreement() -> None:
    """All give the same answers where no clock change is near, so that the same work is compared."""
    for case in LOADS:
        ours = list(islice(_ours(case.expr), min(case.count, 20_000)))
        for name, series in CONTENDERS.items():
            if name == "almanac":
                continue
            for occurrence, local in zip(ours, series(case.expr), strict=False):
                assert local.replace(tzinfo=None) == occurrence.nominal[0], f"{name} on {case.expr}"
                assert local.tzinfo is None or local == occurrence.at, f"{name} on {case.expr}"


def _milliseconds(work: Callable[[], object], times: int) -> float:
    spent = []
    for _ in range(times):
        begun = perf_counter()
        work()
        spent.append(perf_counter() - begun)
    return statistics.median(spent) * 1000


def _guard() -> None:
    with suppress(Invalid):
        check_interval(parse("* * * * *"), load(ZONE), START, 300)


def _year() -> None:
    survey(parse("*/5 * * * *"), load(ZONE), START, START + timedelta(days=365))


def main() -> None:
    """Measures, prints a table, and as the last line the ratios as JSON."""
    _check_agreement()
    table = Table("load", "pattern", *CONTENDERS, title=f"occurrences per second in {ZONE}")
    result: dict[str, float] = {}
    for case in LOADS:
        rates = _rates(case)
        table.add_row(case.name, case.expr, *(f"{rate:,.0f}" for rate in rates.values()))
        for name in ("croniter", "cronsim"):
            result[f"{case.name}_vs_{name}"] = round(rates["almanac"] / rates[name], 1)
    Console(width=100).print(table)
    result["guard_ms"] = round(_milliseconds(_guard, 20), 3)
    result["year_count_ms"] = round(_milliseconds(_year, 100), 3)
    print(
        f"14-day guard on `* * * * *`: {result['guard_ms']} ms; counting a year of `*/5`: {result['year_count_ms']} ms"
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
