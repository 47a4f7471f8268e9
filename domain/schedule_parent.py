"""What a schedule does for those that depend on it: remembers how its occurrences ended, and answers.

Answering is level-triggered: each question is looked at again whenever anything changed, so neither a restart
nor an edit nor a late truth leaves one unanswered.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from domain.dependency import Answer, Question
from domain.parent_matching import Found, Lookup, Outcome, shares
from domain.run import FINAL_STATES, Missed, ParentWait, Run, RunState, WaitStatus
from domain.schedule_mail import TellDependent
from domain.values import Value

REMEMBERED_OUTCOMES = 400
REMEMBERED_STRETCHES = 50
FOLLOWED = frozenset({"superseded", "coalesced"})
"""The reasons for which another run stands for an occurrence."""


class OpenQuestion(Value):
    question: Question
    occurrence: datetime | None = None
    """The match, once looked up."""
    recalled: Outcome | None = None
    """What became of a match that is older than what the schedule remembers."""
    told: ParentWait | None = None
    """The last answer given."""


class Parent(Value):
    """What matching has to know of the schedule itself."""

    workspace: str
    schedule_id: str
    name: str
    cron: str | None
    driven_by: tuple[str, ...]
    timezone: str
    passed: datetime
    """What is not recorded up to here will not fall due any more."""
    undue: tuple[date, ...] = ()
    """But for the occurrences of these local dates, which still wait for several parents."""


class Parenthood(Value):
    """What a schedule holds for its dependents."""

    outcomes: tuple[Outcome, ...] = ()
    missed: tuple[Missed, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    subscribers: tuple[str, ...] = ()
    """Dependents that have no pattern of their own: each occurrence is announced to them."""
    forgotten: datetime | None = None
    """What fell due up to here is no longer remembered; None while everything is."""

    def but(self, **changes: object) -> Parenthood:
        return self.model_copy(update=changes)


class _Memory:
    """The outcomes, found by their instants and by their runs."""

    def __init__(self, parenthood: Parenthood) -> None:
        self._by_instant = {outcome.at: outcome for outcome in parenthood.outcomes}
        self._by_run = {outcome.run_id: outcome for outcome in parenthood.outcomes}
        self._missed = parenthood.missed

    def outcome(self, asked: OpenQuestion) -> Outcome | None:
        """What became of the match, followed to the run that stands for it."""
        if asked.occurrence is None:
            return None
        outcome = self._by_instant.get(asked.occurrence)
        if outcome is None and asked.recalled is not None:
            outcome = self._by_run.get(asked.recalled.run_id, asked.recalled)
        if outcome is None:
            return self._missed_outcome(asked.occurrence)
        seen: set[str] = set()
        while outcome.reason in FOLLOWED and outcome.stands_in in self._by_run and outcome.run_id not in seen:
            seen.add(outcome.run_id)
            outcome = self._by_run[outcome.stands_in]
        return outcome

    def _missed_outcome(self, at: datetime) -> Outcome | None:
        stretch = next((stretch for stretch in self._missed if stretch.first <= at <= stretch.last), None)
        if stretch is None:
            return None
        return Outcome(
            at=at, nominal=(), run_id="", seq=0, state=RunState.SKIPPED, reason="missed", changed_at=stretch.last
        )


def lookup(parenthood: Parenthood, parent: Parent) -> Lookup | None:
    """What has to be looked up now, None when every question has its match: questions without one, and those whose
    match passed without falling due, for it was paused or edited away."""
    memory = _Memory(parenthood)
    questions = tuple(
        asked.question
        for asked in parenthood.questions
        if asked.occurrence is None or (_has_passed(asked, parent) and memory.outcome(asked) is None)
    )
    if not questions:
        return None
    days = {day for question in questions for day in question.dates}
    named = {question.exactly for question in questions}
    return Lookup(
        workspace=parent.workspace,
        schedule_id=parent.schedule_id,
        cron=parent.cron,
        timezone=parent.timezone,
        driven_by=parent.driven_by,
        questions=questions,
        cursor=parent.passed,
        recorded=tuple(o for o in parenthood.outcomes if shares(days, o.dates) or o.at in named),
        forgotten=parenthood.forgotten,
        missed=parenthood.missed,
        undue=parent.undue,
    )


def recorded(parenthood: Parenthood, at: datetime, nominal: tuple[datetime, ...], run: Run) -> Parenthood:
    """An occurrence fell due."""
    outcome = Outcome(
        at=at,
        nominal=nominal,
        run_id=run.run_id,
        seq=run.seq,
        state=run.state,
        reason=run.reason,
        changed_at=run.changed_at,
    )
    outcomes = (*parenthood.outcomes, outcome)
    if len(outcomes) <= REMEMBERED_OUTCOMES:
        return parenthood.but(outcomes=outcomes)
    forgotten = max(outcomes[0].at, parenthood.forgotten or outcomes[0].at)
    return parenthood.but(outcomes=outcomes[1:], forgotten=forgotten)


def missed(parenthood: Parenthood, stretch: Missed) -> Parenthood:
    return parenthood.but(missed=(*parenthood.missed, stretch)[-REMEMBERED_STRETCHES:])


def followed(parenthood: Parenthood, run: Run) -> Parenthood:
    """One of its runs changed. What was heard before or out of order changes nothing."""
    if not run.is_occurrence:
        return parenthood
    outcomes = tuple(_newer(outcome, run) for outcome in parenthood.outcomes)
    questions = tuple(
        asked if asked.recalled is None else asked.model_copy(update={"recalled": _newer(asked.recalled, run)})
        for asked in parenthood.questions
    )
    return parenthood.but(outcomes=outcomes, questions=questions)


def asked(parenthood: Parenthood, question: Question) -> Parenthood:
    """The same question again is answered again."""
    known = next((o for o in parenthood.questions if o.question.run_id == question.run_id), None)
    again = (
        known.model_copy(update={"told": None})
        if known is not None and known.question == question
        else OpenQuestion(question=question, occurrence=question.exactly)
    )
    others = tuple(o for o in parenthood.questions if o is not known)
    return parenthood.but(questions=(*others, again))


def rematch(parenthood: Parenthood) -> Parenthood:
    """The schedule's timing changed, or it is gone: what has not fallen due yet has to be looked up again."""
    memory = _Memory(parenthood)
    questions = tuple(
        asked
        if memory.outcome(asked) is not None or asked.question.exactly
        else asked.model_copy(update={"occurrence": None})
        for asked in parenthood.questions
    )
    return parenthood.but(questions=questions)


def matched(
    parenthood: Parenthood, found: Found, now: datetime, parent: Parent
) -> tuple[Parenthood, tuple[TellDependent, ...]]:
    """Takes in what was looked up. A question without any occurrence on its dates is answered: absent."""
    by_run = {one.run_id: one for one in found.matches}
    kept: list[OpenQuestion] = []
    letters: list[TellDependent] = []
    for asked in parenthood.questions:
        one = by_run.get(asked.question.run_id)
        if one is None:
            kept.append(asked)
        elif one.occurrence is None:
            letters.append(_letter(asked.question, _said(parent, now, WaitStatus.ABSENT)))
        else:
            kept.append(asked.model_copy(update={"occurrence": one.occurrence, "recalled": one.recalled}))
    return parenthood.but(questions=tuple(kept)), tuple(letters)


def answers(parenthood: Parenthood, now: datetime, parent: Parent) -> tuple[Parenthood, tuple[TellDependent, ...]]:
    """What can be said now that has not been said. A question is done with its conclusive answer, or when its
    dependent waits no longer."""
    memory = _Memory(parenthood)
    kept: list[OpenQuestion] = []
    letters: list[TellDependent] = []
    for asked in parenthood.questions:
        if asked.question.until <= now:
            continue
        said = _state_of(memory, asked, now, parent)
        if said is not None and not _same(said, asked.told):
            letters.append(_letter(asked.question, said))
            asked = asked.model_copy(update={"told": said})
        if said is None or said.status is not WaitStatus.ENDED or said.run_state is RunState.UNKNOWN:
            kept.append(asked)
    return parenthood.but(questions=tuple(kept)), tuple(letters)


def next_change(questions: Iterable[OpenQuestion], now: datetime) -> datetime | None:
    """When time alone changes what can be said: an occurrence that is waited for passes, whether or not it falls
    due."""
    return min((o.occurrence for o in questions if o.occurrence is not None and o.occurrence > now), default=None)


def _has_passed(asked: OpenQuestion, parent: Parent) -> bool:
    assert asked.occurrence is not None
    return asked.occurrence <= parent.passed and not shares(asked.question.dates, parent.undue)


def _newer(outcome: Outcome, run: Run) -> Outcome:
    if outcome.run_id != run.run_id or run.seq <= outcome.seq:
        return outcome
    return outcome.model_copy(
        update={
            "seq": run.seq,
            "state": run.state,
            "reason": run.reason,
            "changed_at": run.changed_at,
            "stands_in": run.stands_in,
        }
    )


def _state_of(memory: _Memory, asked: OpenQuestion, now: datetime, parent: Parent) -> ParentWait | None:
    if asked.occurrence is None:
        return None
    outcome = memory.outcome(asked)
    if outcome is None:
        return _said(parent, now, WaitStatus.NOT_DUE).model_copy(update={"occurrence": asked.occurrence})
    ended = outcome.state in FINAL_STATES
    return _said(parent, now, WaitStatus.ENDED if ended else WaitStatus.OPEN).model_copy(
        update={
            "occurrence": asked.occurrence,
            "nominal": outcome.nominal,
            "run_id": outcome.run_id or None,
            "run_state": outcome.state,
            "reason": outcome.reason,
            "ended_at": outcome.changed_at if ended else None,
            "since": outcome.changed_at,
        }
    )


def _said(parent: Parent, now: datetime, status: WaitStatus) -> ParentWait:
    return ParentWait(schedule_id=parent.schedule_id, name=parent.name, status=status, since=now, told_at=now)


def _same(said: ParentWait, told: ParentWait | None) -> bool:
    if told is None:
        return False
    return said.model_copy(update={"since": told.since, "told_at": told.told_at}) == told


def _letter(question: Question, said: ParentWait) -> TellDependent:
    return TellDependent(schedule_id=question.dependent_id, answer=Answer(run_id=question.run_id, parent=said))
