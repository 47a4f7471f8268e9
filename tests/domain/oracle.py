"""An independent, slow evaluator: it watches the wall clock minute by minute and writes down when a pattern is due.

It shares nothing with the product: its own reading of patterns, Python's `zoneinfo` on the `tzdata` package for the
clock, no arithmetic on offsets. A reading that was skipped is due the moment the clock has passed it, one that comes
again is not due a second time.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

zoneinfo.reset_tzpath(())

MINUTE = timedelta(minutes=1)
_NAMES = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()  # noqa: SIM905
_WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()  # noqa: SIM905


@dataclass(frozen=True)
class Due:
    """One occurrence: its instant (UTC), the local times it stands for, and which of them were never on the clock."""

    at: datetime
    nominal: tuple[datetime, ...]
    skipped: bool
    repeated: bool


@dataclass(frozen=True)
class Tick:
    """One minute of real time: the readings that became past with it, and what is odd about the clock then."""

    at: datetime
    skipped: tuple[datetime, ...]
    reading: datetime | None
    comes_again: bool


def watch(zone: str, begin: datetime, end: datetime) -> list[Tick]:
    """What the zone's clock shows each minute from `begin` to `end` (UTC, whole minutes), second passes left out."""
    clock = ZoneInfo(zone)
    minutes = int((end - begin) / MINUTE)
    shown = [(begin + n * MINUTE).astimezone(clock).replace(tzinfo=None, fold=0) for n in range(minutes + 1)]
    last_seen = {reading: n for n, reading in enumerate(shown)}
    seen: set[datetime] = set(shown[:1])
    latest = shown[0]
    ticks = [Tick(begin, (), shown[0], last_seen[shown[0]] > 0)]
    for n in range(1, minutes + 1):
        reading, skipped = shown[n], []
        while latest + MINUTE < reading:
            latest += MINUTE
            skipped.append(latest)
        latest = max(latest, reading)
        fresh = reading not in seen
        seen.add(reading)
        ticks.append(Tick(begin + n * MINUTE, tuple(skipped), reading if fresh else None, last_seen[reading] > n))
    return ticks


def due(expr: str, ticks: list[Tick]) -> Iterator[Due]:
    """The occurrences of a pattern among the ticks."""
    matches = matching(expr)
    for tick in ticks:
        skipped = tuple(reading for reading in tick.skipped if matches(reading))
        real = (tick.reading,) if tick.reading is not None and matches(tick.reading) else ()
        if skipped or real:
            yield Due(tick.at, skipped + real, bool(skipped), not skipped and tick.comes_again)


def matching(expr: str) -> Callable[[datetime], bool]:
    """Whether a local time matches a pattern, field by field."""
    minute, hour, day, month, weekday = expr.upper().split()
    minutes, hours, months = values(minute, 0, 59), values(hour, 0, 23), values(month, 1, 12)
    days, weekdays = values(day, 1, 31), {value % 7 for value in values(weekday, 0, 7)}
    both_restricted = day[0] != "*" and weekday[0] != "*"

    def matches(reading: datetime) -> bool:
        if reading.minute not in minutes or reading.hour not in hours or reading.month not in months:
            return False
        in_day, in_weekday = reading.day in days, reading.isoweekday() % 7 in weekdays
        return (in_day or in_weekday) if both_restricted else (in_day and in_weekday)

    return matches


@cache
def values(text: str, low: int, high: int) -> frozenset[int]:
    """The values one field allows."""
    allowed: set[int] = set()
    for item in text.split(","):
        base, _, step = item.partition("/")
        left, _, right = base.partition("-")
        if left == "*":
            left, right = str(low), str(6 if high == 7 else high)
        first = _number(left)
        last = first if not right else 7 if right == "SUN" and first > 0 else _number(right)
        allowed |= {value for value in range(first, last + 1) if (value - first) % int(step or 1) == 0}
    return frozenset(allowed)


def _number(text: str) -> int:
    if text in _NAMES:
        return _NAMES.index(text) + 1
    return _WEEKDAYS.index(text) if text in _WEEKDAYS else int(text)


@cache
def changes(zone: str, first_year: int, last_year: int) -> tuple[datetime, ...]:
    """The instants (UTC, to the minute) at which a zone's offset changes, found by looking every six hours."""
    clock = ZoneInfo(zone)
    at, end, found = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC), []
    before = at.astimezone(clock).utcoffset()
    while at < end:
        following = at + timedelta(hours=6)
        after = following.astimezone(clock).utcoffset()
        if after != before:
            found.append(_narrowed(clock, at, following))
        at, before = following, after
    return tuple(found)


def _narrowed(clock: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first minute in `(before, after]` with another offset than at `before`."""
    offset = before.astimezone(clock).utcoffset()
    while after - before > MINUTE:
        middle = before + (after - before) // 2 // MINUTE * MINUTE
        if middle.astimezone(clock).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after
