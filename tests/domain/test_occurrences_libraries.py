"""The function beside croniter and cronsim on days without clock changes, where all three should agree.

They don't, for a few spellings: each disagreement found must be of a known class, and an example shows each class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim

from domain.cron import parse
from domain.errors import Invalid
from domain.occurrences import upcoming
from domain.zones import load
from tests.domain.pattern_text import any_pattern

# No clock change since 1951, and none in Arizona since 1968.
CALM = ["Asia/Tokyo", "America/Phoenix"]
NAMED = ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", "SUN MON TUE WED THU FRI SAT")

Library = Callable[[str, datetime], Iterator[datetime]]


def _croniter(expr: str, after: datetime) -> Iterator[datetime]:
    answers: Any = croniter(expr, after, ret_type=datetime)
    try:
        yield from answers
    except CroniterBadDateError:
        # It gives up after 50 years of looking.
        return


def _cronsim(expr: str, after: datetime) -> Iterator[datetime]:
    return CronSim(expr, after)


def _answers(library: Library, expr: str, zone: str, after: datetime, count: int) -> list[datetime]:
    found = islice(library(expr, after.astimezone(ZoneInfo(zone))), count)
    return [local.astimezone(UTC) for local in found]


def _one_value_ranges(expr: str) -> list[str]:
    """The ranges from a value to itself, such as `5-5`, `MON-mon/2` or `7-07`."""
    items = [item for field in expr.upper().split() for item in field.split(",") if "-" in item]
    ends = [(item, [_number(end) for end in item.split("/")[0].split("-")]) for item in items]
    return [item for item, (first, last) in ends if first == last]


def _number(text: str) -> int:
    names = next((row.split() for row in NAMED if text in row.split()), None)
    return int(text) if names is None else names.index(text) + ("JAN" in names)


def _why_croniter_differs(expr: str) -> str | None:
    day, weekday = expr.split()[2], expr.split()[4]
    if _one_value_ranges(expr):
        return "takes a range from a value to itself for the whole field"
    if any(field[0] == "*" and field != "*" for field in (day, weekday)):
        return "takes a day field like `*/2` for restricted, so that either day field may match"
    if "*" in day.split(",")[1:] or "*" in weekday.split(",")[1:]:
        return "takes a day field like `1,*` for `*`, so that only the other one counts"
    return None


def _why_cronsim_differs(expr: str) -> str | None:
    if any("/" in item for item in _one_value_ranges(expr)):
        return "takes a stepped range from a value to itself to go on to the end of the field"
    return None


LIBRARIES: dict[str, tuple[Library, Callable[[str], str | None]]] = {
    "croniter": (_croniter, _why_croniter_differs),
    "cronsim": (_cronsim, _why_cronsim_differs),
}


@pytest.mark.parametrize("zone", CALM)
@pytest.mark.parametrize("library", LIBRARIES)
def test_disagreements_on_calm_days_are_all_of_known_classes(library: str, zone: str) -> None:
    answers, why = LIBRARIES[library]
    random, classes = Random(f"{library} in {zone}"), Counter[str | None]()
    for _ in range(700):
        expr = any_pattern(random)
        try:
            pattern = parse(expr)
        except Invalid as refusal:
            assert refusal.code == "schedule.validation.cron_never", expr  # noqa: PT017
            continue
        after = datetime(2027, random.randint(1, 12), random.randint(1, 28), random.randint(0, 23), 30, tzinfo=UTC)
        until = after + timedelta(days=8 * 366)
        ours = [occurrence.at for occurrence in upcoming(pattern, load(zone), after, limit=6, until=until)]
        theirs = _answers(answers, expr, zone, after, len(ours))
        reason = why(expr)
        assert theirs == ours or reason is not None, expr
        classes[reason] += 1
    # Enough was compared without any excuse.
    assert classes[None] > 150


@pytest.mark.parametrize(
    ("library", "expr", "time", "ours_only"),
    [
        ("croniter", "5-5 9 * * *", "2026-12-01T09:00", False),
        ("croniter", "0 9 * * 7-7", "2026-12-01T09:00", False),
        ("croniter", "0 9 */16 * 1", "2026-12-01T09:00", False),
        ("croniter", "0 9 13,* * 1", "2026-12-02T09:00", True),
        ("cronsim", "0 9 1 * MON-MON/2", "2026-12-02T09:00", False),
    ],
)
def test_each_class_of_disagreement_is_real(library: str, expr: str, time: str, ours_only: bool) -> None:
    zone, (answers, why) = "Asia/Tokyo", LIBRARIES[library]
    at = datetime.fromisoformat(time).replace(tzinfo=ZoneInfo(zone))
    before = at - timedelta(minutes=1)
    assert why(expr) is not None
    assert (upcoming(parse(expr), load(zone), before, limit=1)[0].at == at) is ours_only
    assert (next(answers(expr, before)) == at) is not ours_only
