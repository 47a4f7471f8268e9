"""A schedule between its parents and its dependents: what it hears from them and what it then has to say.

All of it may come late, twice and out of order; what follows is decided anew each time from what is known.
"""

from __future__ import annotations

from datetime import datetime

from domain import schedule_dependent, schedule_parent
from domain.dependency import Answer, Question
from domain.parent_matching import Found, Lookup
from domain.planning import WaitEnds
from domain.schedule import Condition
from domain.schedule_mail import ParentDue, Subscribe, TellDependent
from domain.schedule_parent import Parent, Parenthood
from domain.schedule_state import ScheduleState


def asked(state: ScheduleState, question: Question) -> ScheduleState:
    return state.but(parenthood=schedule_parent.asked(state.parenthood, question))


def subscribed(state: ScheduleState, subscription: Subscribe) -> ScheduleState:
    others = tuple(s for s in state.parenthood.subscribers if s != subscription.subscriber)
    subscribers = (*others, subscription.subscriber) if subscription.on else others
    return state.but(parenthood=state.parenthood.but(subscribers=subscribers))


def heard(state: ScheduleState, answers: tuple[Answer, ...], now: datetime) -> ScheduleState:
    return schedule_dependent.decide(schedule_dependent.heard(state, answers, now), now)


def lookup(state: ScheduleState, now: datetime) -> Lookup | None:
    return schedule_parent.lookup(state.parenthood, _as_parent(state, now))


def matched(state: ScheduleState, found: Found, now: datetime) -> ScheduleState:
    return _said(state, *schedule_parent.matched(state.parenthood, found, now, _as_parent(state, now)))


def wait_ends(state: ScheduleState, dues: tuple[ParentDue, ...]) -> WaitEnds:
    """What has to be looked up before occurrences that parents drive can wait: the end of their local dates."""
    days = tuple(due.dates[-1] for due in dues)
    return WaitEnds(timezone=state.definition.timezone, deadline=state.definition.dependency_deadline, dates=days)


def settled(state: ScheduleState, now: datetime) -> ScheduleState:
    """Answers what dependents have asked."""
    return _said(state, *schedule_parent.answers(state.parenthood, now, _as_parent(state, now)))


def next_wake(state: ScheduleState, now: datetime) -> datetime | None:
    """When something here changes by time alone: a wait ends, or an occurrence that is waited for passes while the
    schedule does not fire."""
    passes = schedule_parent.next_change(state.parenthood.questions, now)
    times = [at for at in (schedule_dependent.next_wake(state), passes) if at is not None]
    return min(times, default=None)


def _as_parent(state: ScheduleState, now: datetime) -> Parent:
    """While a schedule fires, what it has not dealt with may still fall due; while a person keeps it from firing,
    what passes is gone."""
    definition = state.definition
    kept_from_firing = state.condition is not Condition.ACTIVE
    return Parent(
        workspace=state.workspace,
        schedule_id=state.schedule_id,
        name=definition.name,
        cron=None if state.deleted else definition.cron,
        driven_by=definition.parents if definition.is_driven and not state.deleted else (),
        timezone=definition.timezone,
        passed=max(now, state.cursor) if kept_from_firing else state.cursor,
        undue=tuple(
            day for waiting in state.waiting if waiting.run.scheduled_for is None for day in waiting.question.dates
        ),
    )


def _said(state: ScheduleState, parenthood: Parenthood, letters: tuple[TellDependent, ...]) -> ScheduleState:
    if parenthood == state.parenthood and not letters:
        return state
    return state.but(parenthood=parenthood, letters=(*state.letters, *letters))
