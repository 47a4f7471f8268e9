"""How every occurrence of a graph of schedules ends, worked out slowly from the whole truth.

It knows each parent's occurrences and ends beforehand and looks them up in plain lists; letters, states and clocks
have no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from domain import cron, planning, zones
from domain.occurrences import iterate
from domain.run import RunState
from domain.schedule import ScheduleDefinition

FOREVER = datetime.max.replace(tzinfo=UTC)

Ends = Callable[[str, datetime], tuple[RunState, datetime]]
"""Of a schedule's run that starts then: its last state, and when that is known; an unknown end never is."""


@dataclass(frozen=True)
class Fate:
    due: datetime
    """What the occurrence is scheduled for."""
    dates: frozenset[date]
    state: RunState
    reason: str | None
    decided: datetime
    """When it was released, or ended without."""
    known: datetime
    """When its end is known; FOREVER where it never is."""

    @property
    def released(self) -> bool:
        return self.reason is None


@dataclass(frozen=True)
class _Wait:
    due: datetime
    asked: datetime
    """When it begins to wait."""
    dates: frozenset[date]
    parents: tuple[Fate | None, ...]
    until: datetime


def fates(
    definitions: Mapping[str, ScheduleDefinition], began: datetime, until: datetime, ends: Ends
) -> dict[str, list[Fate]]:
    """Each schedule's occurrences after `began`, in order; parents come before their dependents in `definitions`."""
    found: dict[str, list[Fate]] = {}
    for schedule_id, definition in definitions.items():
        waits = sorted(_waits(definition, found, began, until), key=lambda wait: wait.asked)
        found[schedule_id] = []
        busy = began
        for wait in waits:
            fate = _fate(schedule_id, definition, wait, busy, ends)
            busy = max(busy, fate.decided) if fate.reason != "overlap" else busy
            found[schedule_id].append(fate)
    return found


def _waits(
    definition: ScheduleDefinition, found: Mapping[str, list[Fate]], began: datetime, until: datetime
) -> list[_Wait]:
    zone = zones.load(definition.timezone)
    parents = [found[parent] for parent in definition.parents]
    waits = []
    if definition.cron is not None:
        for occurrence in iterate(cron.parse(definition.cron), zone, began):
            if occurrence.at > until:
                return waits
            dates = frozenset(occurrence.local_dates)
            end = planning.wait_end(zone, max(dates), definition.dependency_deadline)
            matched = tuple(_match(fates, dates, occurrence.at) for fates in parents)
            waits.append(_Wait(occurrence.at, occurrence.at, dates, matched, end))
    if len(parents) == 1:
        for fate in parents[0]:
            end = planning.wait_end(zone, max(fate.dates), definition.dependency_deadline)
            waits.append(_Wait(fate.due, _announced(definition, found, fate), fate.dates, (fate,), end))
        return waits
    for day in sorted({day for fates in parents for fate in fates for day in fate.dates}):
        last = tuple(_match(fates, frozenset({day}), FOREVER) for fates in parents)
        due = max(fate.due for fate in last if fate is not None)
        first = min(_announced(definition, found, f) for fates in parents for f in fates if day in f.dates)
        end = planning.wait_end(zone, day, definition.dependency_deadline)
        waits.append(_Wait(due, first, frozenset({day}), last, end))
    return waits


def _announced(definition: ScheduleDefinition, found: Mapping[str, list[Fate]], fate: Fate) -> datetime:
    """When those that it drives hear of the occurrence."""
    return _heard[id(fate)]


_heard: dict[int, datetime] = {}


def _match(fates: list[Fate], dates: frozenset[date], instant: datetime) -> Fate | None:
    same_date = sorted((fate for fate in fates if fate.dates & dates), key=lambda fate: fate.due)
    before = [fate for fate in same_date if fate.due <= instant]
    if before:
        return before[-1]
    return same_date[0] if same_date else None


def _fate(schedule_id: str, definition: ScheduleDefinition, wait: _Wait, busy: datetime, ends: Ends) -> Fate:
    raise NotImplementedError
