"""Occurrences per second beside croniter, cronsim and croniter-rs, and the cost of the guard and of counting a year.

All run in this one process, on the same pattern, zone, start and number of occurrences, each several times in turn; the
best time of each counts. Every library gives one aware `datetime` an occurrence; ours gives the whole occurrence: the
aware instant, the local times it stands for, and what the rule did.

    PYTHONPATH=. python bench/occurrences.py
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
from domain.occurrences import check_interval, iterate, survey
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


def _ours(expr: str) -> Iterator[datetime]:
    return (occurrence.at for occurrence in iterate(parse(expr), load(ZONE), START))


def _ours_whole(expr: str) -> Iterator[Any]:
    return iterate(parse(expr), load(ZONE), START)


def _theirs(library: Any) -> Callable[[str], Iterator[Any]]:
    start = START.astimezone(ZoneInfo(ZONE))
    if library is CronSim:
        return lambda expr: CronSim(expr, start)
    return lambda expr: library(expr, start, ret_type=datetime)


CONTENDERS: dict[str, Callable[[str], Iterator[Any]]] = {
    "almanac": _ours_whole,
    "croniter": _theirs(croniter),
    "cronsim": _theirs(CronSim),
    "croniter-rs": _theirs(croniter_rs),
}


def _seconds(series: Callable[[str], Iterator[Any]], load: Load) -> float:
    begun = perf_counter()
    for _ in range(load.times):
        taken = sum(1 for _ in islice(series(load.expr), load.count))
        assert taken == load.count, f"{load.expr}: {taken} of {load.count}"
    return perf_counter() - begun


def _rates(load: Load) -> dict[str, float]:
    """Occurrences per second, by contender."""
    best = dict.fromkeys(CONTENDERS, float("inf"))
    for _ in range(ROUNDS):
        for name, series in CONTENDERS.items():
            best[name] = min(best[name], _seconds(series, load))
    return {name: load.count * load.times / seconds for name, seconds in best.items()}


def _check_agreement() -> None:
    """All give the same instants where no clock change is near, so that the same work is compared."""
    for load in LOADS:
        count = min(load.count, 20_000)
        ours = list(islice(_ours(load.expr), count))
        for name, series in CONTENDERS.items():
            if name != "almanac":
                theirs = [local.astimezone(UTC) for local in islice(series(load.expr), count)]
                assert theirs == ours, f"{name} on {load.expr}"


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
    for load in LOADS:
        rates = _rates(load)
        table.add_row(load.name, load.expr, *(f"{rate:,.0f}" for rate in rates.values()))
        for name in ("croniter", "cronsim"):
            result[f"{load.name}_vs_{name}"] = round(rates["almanac"] / rates[name], 1)
    Console(width=100).print(table)
    result["guard_ms"] = round(_milliseconds(_guard, 20), 3)
    result["year_count_ms"] = round(_milliseconds(_year, 100), 3)
    print(
        f"14-day guard on `* * * * *`: {result['guard_ms']} ms; counting a year of `*/5`: {result['year_count_ms']} ms"
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
