"""Which occurrence of a schedule a question means: what it has recorded, and what its pattern still has to come.

A schedule without a pattern is due when its parents are, so their patterns are asked instead. To be called where the
answer is recorded: it depends on the zone data of the day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime

from domain.dependency import Question, match
from domain.planning import occurrences_on
from domain.run import Missed, RunState
from domain.schedule import ScheduleDefinition
from domain.values import Value


class Outcome(Value):
    """One occurrence that fell due, and what is known of its end."""

    at: datetime
    nominal: tuple[datetime, ...]
    run_id: str
    seq: int
    """The number of the run's last trail row that this knows of."""
    state: RunState
    reason: str | None
    changed_at: datetime
    stands_in: str | None = None

    @property
    def dates(self) -> tuple[date, ...]:
        return tuple(dict.fromkeys(nominal.date() for nominal in self.nominal))


class Lookup(Value):
    """What has to be looked up to match questions. Occurrences up to the cursor exist only where they were recorded
    or are part of a missed stretch; those after it by the pattern."""

    workspace: str
    schedule_id: str
    cron: str | None
    timezone: str
    driven_by: tuple[str, ...]
    """The parents whose occurrences make its own; empty where it has a pattern or fires no more."""
    questions: tuple[Question, ...]
    cursor: datetime
    recorded: tuple[Outcome, ...]
    forgotten: datetime | None
    """What fell due up to here is asked of the read model; None where nothing was forgotten."""
    missed: tuple[Missed, ...]
    undue: tuple[date, ...] = ()
    """The local dates whose occurrence waits for several parents: it falls due when that wait ends, wherever the
    cursor is by then."""


class Match(Value):
    run_id: str
    occurrence: datetime | None
    recalled: Outcome | None = None
    """The outcome of an occurrence older than what the schedule remembers."""


class Found(Value):
    matches: tuple[Match, ...]


def look_up(request: Lookup, recalled: tuple[Outcome, ...], ancestors: Mapping[str, ScheduleDefinition]) -> Found:
    """Matches questions with occurrences. `recalled` are older outcomes than the schedule remembers, `ancestors` the
    definitions by id from which a driven schedule's occurrences follow."""
    known = {outcome.at: outcome for outcome in (*recalled, *request.recorded)}
    forgotten = {outcome.at: outcome for outcome in recalled}
    matches = []
    for question in request.questions:
        at = _match(request, question, known, ancestors)
        matches.append(
            Match(run_id=question.run_id, occurrence=at, recalled=forgotten.get(at) if at is not None else None)
        )
    return Found(matches=tuple(matches))


def due_on(
    parents: tuple[str, ...], ancestors: Mapping[str, ScheduleDefinition], days: Iterable[date]
) -> set[datetime]:
    """When a schedule that these parents drive is due on these dates: with one parent whenever that is, with several
    once a date, at the latest of each parent's last."""
    if len(parents) == 1:
        return _own(parents[0], ancestors, tuple(days))
    found = set()
    for day in days:
        last = [max(instants) for parent in parents if (instants := _own(parent, ancestors, (day,)))]
        if last:
            found.add(max(last))
    return found


def _own(schedule_id: str, ancestors: Mapping[str, ScheduleDefinition], days: tuple[date, ...]) -> set[datetime]:
    definition = ancestors.get(schedule_id)
    if definition is None:
        return set()
    if definition.cron is not None:
        return set(occurrences_on(definition.cron, definition.timezone, days))
    return due_on(definition.parents, ancestors, days)


def _match(
    request: Lookup,
    question: Question,
    known: Mapping[datetime, Outcome],
    ancestors: Mapping[str, ScheduleDefinition],
) -> datetime | None:
    if question.exactly is not None:
        return question.exactly if question.exactly in known else None
    recorded = {outcome.at for outcome in known.values() if shares(question.dates, outcome.dates)}
    if len(request.driven_by) > 1 and recorded:
        return match(recorded, question.instant)
    by_pattern = (
        due_on(request.driven_by, ancestors, question.dates)
        if request.driven_by
        else occurrences_on(request.cron, request.timezone, question.dates)
    )
    expected = {at for at in by_pattern if at > request.cursor or _is_missed(request, at)}
    undue = due_on(request.driven_by, ancestors, set(question.dates).intersection(request.undue))
    return match(expected | undue | recorded, question.instant)


def shares(some: Iterable[date], others: Iterable[date]) -> bool:
    return not set(some).isdisjoint(others)


def _is_missed(request: Lookup, at: datetime) -> bool:
    return any(stretch.first <= at <= stretch.last for stretch in request.missed)
