"""How every occurrence of a graph of schedules ends, worked out slowly from the whole truth.

It knows each parent's occurrences and ends beforehand and looks them up in plain lists; letters, states and clocks
have no part in it. A newer occurrence gives way to an older one that still waits (policy `skip`), and no lane is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from domain import cron, planning, zones
from domain.dependency import TerminalStatus
from domain.occurrences import iterate
from domain.run import RunState
from domain.schedule import ScheduleDefinition

FOREVER = datetime.max.replace(tzinfo=UTC)

Ends = Callable[[str, datetime, datetime], tuple[RunState, datetime]]
"""How the schedule's run ends that is due at the first instant and starts at the second, and when that is known."""


@dataclass(frozen=True)
class Fate:
    """What becomes of one occurrence."""

    due: datetime
    dates: frozenset[date]
    announced: datetime
    """When those that it drives hear of it."""
    decided: datetime
    """When it was released, or ended without."""
    state: RunState
    reasons: frozenset[str | None]
    """Why. Two answers that come at the same moment are heard in any order."""
    known: datetime
    """When its end is known; FOREVER where it never is."""


@dataclass(frozen=True)
class Wait:
    due: datetime
    begins: datetime
    dates: frozenset[date]
    parents: tuple[Fate | None, ...]
    until: datetime


def fates(
    definitions: Mapping[str, ScheduleDefinition], began: datetime, until: datetime, ends: Ends
) -> dict[str, list[Fate]]:
    """Each schedule's occurrences after `began`; parents come before their dependents in `definitions`."""
    found: dict[str, list[Fate]] = {}
    for schedule_id, definition in definitions.items():
        parents = [found[parent] for parent in definition.parents]
        found[schedule_id] = []
        free = began
        for wait in sorted(_waits(definition, parents, began, until), key=lambda wait: wait.begins):
            fate = _fate(schedule_id, definition, wait, free, ends)
            free = max(free, fate.decided)
            found[schedule_id].append(fate)
    return found


def _waits(definition: ScheduleDefinition, parents: list[list[Fate]], began: datetime, until: datetime) -> list[Wait]:
    if definition.cron is not None:
        return _by_pattern(definition, parents, began, until)
    if len(parents) == 1:
        return [
            Wait(fate.due, fate.announced, fate.dates, (fate,), _end(definition, fate.dates)) for fate in parents[0]
        ]
    waits = []
    for day in sorted({day for fates in parents for fate in fates for day in fate.dates}):
        dates = frozenset({day})
        last = tuple(_match(fates, dates, FOREVER) for fates in parents)
        begins = min(fate.announced for fates in parents for fate in fates if day in fate.dates)
        due = max(fate.due for fate in last if fate is not None)
        waits.append(Wait(due, begins, dates, last, _end(definition, dates)))
    return waits


def _by_pattern(
    definition: ScheduleDefinition, parents: list[list[Fate]], began: datetime, until: datetime
) -> list[Wait]:
    assert definition.cron is not None
    waits = []
    for occurrence in iterate(cron.parse(definition.cron), zones.load(definition.timezone), began):
        if occurrence.at > until:
            break
        dates = frozenset(occurrence.local_dates)
        matched = tuple(_match(fates, dates, occurrence.at) for fates in parents)
        waits.append(Wait(occurrence.at, occurrence.at, dates, matched, _end(definition, dates)))
    return waits


def _end(definition: ScheduleDefinition, dates: frozenset[date]) -> datetime:
    return planning.wait_end(zones.load(definition.timezone), max(dates), definition.dependency_deadline)


def _match(fates: list[Fate], dates: frozenset[date], instant: datetime) -> Fate | None:
    same_date = sorted((fate for fate in fates if fate.dates & dates), key=lambda fate: fate.due)
    before = [fate for fate in same_date if fate.due <= instant]
    if before:
        return before[-1]
    return same_date[0] if same_date else None


def _fate(schedule_id: str, definition: ScheduleDefinition, wait: Wait, free: datetime, ends: Ends) -> Fate:
    if definition.parents and wait.begins < free:
        return _skipped(definition, wait, wait.begins, {"overlap"})
    moments: list[tuple[datetime, int, str | None]] = [(max(wait.until, wait.begins), -1, "dependency_deadline")]
    if not definition.parents:
        moments = []
    moments += [(wait.begins, 1, "parent_absent") for parent in wait.parents if parent is None]
    known = [parent for parent in wait.parents if parent is not None]
    accepts = definition.after_terminal_status is TerminalStatus.ANY_TERMINAL
    moments += [
        (max(wait.begins, parent.known), 0, "parent_failed")
        for parent in known
        if parent.state is not RunState.SUCCEEDED and not accepts and parent.known != FOREVER
    ]
    if len(known) == len(wait.parents) and all(parent.known != FOREVER for parent in known):
        delay = timedelta(minutes=definition.after_delay_minutes)
        released = max([wait.begins, *(parent.known + delay for parent in known)])
        moments.append((released, 3, None))
    when, rank, reason = min(moments, key=lambda moment: moment[:2])
    if reason is not None:
        heard = {why for moment, other, why in moments if moment == when and other in (0, 1)}
        return _skipped(definition, wait, when, heard if rank >= 0 else {reason})
    state, known_at = ends(schedule_id, wait.due, when)
    return Fate(wait.due, wait.dates, _announced(definition, wait, when), when, state, frozenset({None}), known_at)


def _skipped(definition: ScheduleDefinition, wait: Wait, when: datetime, reasons: set[str | None]) -> Fate:
    announced = _announced(definition, wait, when)
    return Fate(wait.due, wait.dates, announced, when, RunState.SKIPPED, frozenset(reasons), when)


def _announced(definition: ScheduleDefinition, wait: Wait, decided: datetime) -> datetime:
    """Driven by several it is due when all is decided, else at once."""
    return decided if definition.cron is None and len(definition.parents) > 1 else wait.begins
