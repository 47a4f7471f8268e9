"""What an author should know of a schedule beside its neighbours: dates on which a parent is never due, waits that are
long or can't be met, and times too close to those of others that run the same. It warns and never refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from itertools import takewhile

from domain import cron, zones
from domain.dependency import match_ordered
from domain.occurrences import Occurrence, iterate
from domain.planning import wait_end
from domain.schedule import ScheduleDefinition

DATES_AHEAD = timedelta(days=60)
OVERLAPS_AHEAD = timedelta(days=14)

Definitions = Mapping[str, ScheduleDefinition]
Durations = Mapping[str, timedelta]
"""The 95th percentile of each schedule's recent runs."""


def on_parents(
    definition: ScheduleDefinition, parents: Definitions, durations: Durations, now: datetime
) -> tuple[str, ...]:
    """Warnings about the parents of a schedule that has a pattern; parents without one are left out, for they follow
    others."""
    if definition.cron is None:
        return ()
    own = _ahead(definition, now, DATES_AHEAD)
    warnings: list[str] = []
    for parent_id in definition.parents:
        parent = parents.get(parent_id)
        if parent is not None and parent.cron is not None:
            warnings += _on_parent(definition, own, parent, durations.get(parent_id), now)
    return tuple(warnings)


def on_overlaps(
    schedule_id: str, definition: ScheduleDefinition, others: Definitions, durations: Durations, now: datetime
) -> tuple[str, ...]:
    """Warnings about independent schedules of the same target, `others`, that are due closer than the earlier one
    usually takes."""
    mine = _ahead(definition, now, OVERLAPS_AHEAD)
    warnings: list[str] = []
    for other_id, other in others.items():
        theirs = _ahead(other, now, OVERLAPS_AHEAD)
        pairs = ((schedule_id, definition, mine, other, theirs), (other_id, other, theirs, definition, mine))
        for earlier_id, earlier, first, later, second in pairs:
            usual, closest = durations.get(earlier_id), _closest([o.at for o in first], [o.at for o in second])
            if usual is not None and closest is not None and closest[0] < usual:
                warnings.append(_too_close(earlier, later, usual, *closest))
    return tuple(warnings)


def independent(schedule_id: str, other_id: str, edges: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether neither waits for the other, through any number of others."""
    return other_id not in _upstream(schedule_id, edges) and schedule_id not in _upstream(other_id, edges)


def _on_parent(
    definition: ScheduleDefinition,
    own: list[Occurrence],
    parent: ScheduleDefinition,
    usual: timedelta | None,
    now: datetime,
) -> Iterator[str]:
    due: dict[date, list[datetime]] = {}
    for occurrence in _ahead(parent, now - timedelta(days=2), DATES_AHEAD + timedelta(days=4)):
        for day in occurrence.local_dates:
            due.setdefault(day, []).append(occurrence.at)
    matched, absent = [], []
    for occurrence in own:
        at = match_ordered(_on_dates(due, occurrence.local_dates), occurrence.at)
        if at is None:
            absent.append(occurrence)
        else:
            matched.append((occurrence, at))
    if absent and not matched:
        yield f"{parent.name} is never due on a date of this schedule in the next 60 days, so nothing would run."
    elif absent:
        yield (
            f"{parent.name} is not due on {len(absent)} of this schedule's {len(own)} occurrences in the next 60 days, "
            f"first on {absent[0].local_dates[-1]}: those end skipped/parent_absent."
        )
    late = [(occurrence, at) for occurrence, at in matched if at > occurrence.at]
    if late:
        longest = max(at - occurrence.at for occurrence, at in late)
        yield (
            f"{parent.name} is due after this schedule on {len(late)} of {len(own)} occurrences in the next 60 days; "
            f"it would wait up to {_span(longest)} before the parent is even due."
        )
    if usual is not None:
        yield from _deadline(definition, parent, matched, usual)


def _on_dates(due: Mapping[date, list[datetime]], dates: tuple[date, ...]) -> list[datetime]:
    """What is due on these dates, in order. Nearly every occurrence has one date, whose instants are not copied."""
    first, *others = dates
    found = due.get(first, [])
    return sorted({*found, *(at for day in others for at in due.get(day, ()))}) if others else found


def _deadline(
    definition: ScheduleDefinition,
    parent: ScheduleDefinition,
    matched: list[tuple[Occurrence, datetime]],
    usual: timedelta,
) -> Iterator[str]:
    zone, needed = zones.load(definition.timezone), usual + timedelta(minutes=definition.after_delay_minutes)
    waiting = [(at, occurrence.local_dates[-1]) for occurrence, at in matched]
    ends = {day: wait_end(zone, day, definition.dependency_deadline) for day in {day for _, day in waiting}}
    missed = [ends[day] - at for at, day in waiting if at + needed > ends[day]]
    if missed:
        yield (
            f"{parent.name} usually takes {_span(usual)} (95th percentile), and this schedule stops waiting "
            f"{_span(max(min(missed), timedelta()))} after it is due: {len(missed)} of {len(matched)} occurrences "
            "in the next 60 days would likely end skipped/dependency_deadline."
        )


def _too_close(
    earlier: ScheduleDefinition, later: ScheduleDefinition, usual: timedelta, gap: timedelta, at: datetime
) -> str:
    return (
        f"{later.name} is due {_span(gap)} after {earlier.name}, first at {at:%Y-%m-%d %H:%MZ}, and runs the same; "
        f"{earlier.name} usually takes {_span(usual)} (95th percentile). Let one wait for the other, or move it."
    )


def _closest(first: list[datetime], second: list[datetime]) -> tuple[timedelta, datetime] | None:
    """The least time from one of the first to the next of the second at or after it, and when that is."""
    best: tuple[timedelta, datetime] | None = None
    remaining = iter(second)
    following = next(remaining, None)
    for at in first:
        while following is not None and following < at:
            following = next(remaining, None)
        if following is None:
            return best
        if best is None or following - at < best[0]:
            best = (following - at, following)
    return best


def _upstream(schedule_id: str, edges: Mapping[str, tuple[str, ...]]) -> set[str]:
    found: set[str] = set()
    wanted = [schedule_id]
    while wanted:
        for parent in edges.get(wanted.pop(), ()):
            if parent not in found:
                found.add(parent)
                wanted.append(parent)
    return found


def _ahead(definition: ScheduleDefinition, after: datetime, reach: timedelta) -> list[Occurrence]:
    if definition.cron is None:
        return []
    found = iterate(cron.parse(definition.cron), zones.load(definition.timezone), after)
    return list(takewhile(lambda occurrence: occurrence.at <= after + reach, found))


def _span(time: timedelta) -> str:
    """`2 h 05 min`, `18 min 42 s`, `7 s`."""
    seconds = round(time.total_seconds())
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {seconds % 60:02} s" if minutes else f"{seconds} s"
