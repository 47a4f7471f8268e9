"""What a schedule does for those that depend on it: remembers how its occurrences ended, and answers.

Answering is level-triggered: each question is looked at again whenever anything changed, so neither a restart
nor an edit nor a late truth leaves one unanswered.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

from domain.dependency import Answer, Question, match
from domain.occurrences import Occurrence
from domain.planning import occurrences_on
from domain.run import FINAL_STATES, Missed, ParentWait, Run, RunState, WaitStatus
from domain.schedule_mail import TellDependent
from domain.values import Value

REMEMBERED_OUTCOMES = 400
REMEMBERED_STRETCHES = 50
FOLLOWED = frozenset({"superseded", "coalesced"})
"""The reasons for which another run stands for an occurrence."""


class Outcome(Value):
    """One occurrence that fell due, and what is known of its end."""

    at: datetime
    dates: tuple[date, ...]
    run_id: str
    state: RunState
    reason: str | None
    changed_at: datetime
    stands_in: str | None = None


class OpenQuestion(Value):
    question: Question
    occurrence: datetime | None = None
    """The match, once looked up."""
    told: ParentWait | None = None
    """The last answer given."""


class Parent(Value):
    """What matching has to know of the schedule itself."""

    schedule_id: str
    name: str
    cron: str | None
    is_driven: bool
    timezone: str
    passed: datetime
    """What is not recorded up to here will not fall due any more."""


class Lookup(Value):
    """What has to be looked up to match questions: which occurrences there are on the dates. Those up to the cursor
    exist only where they were recorded or are part of a missed stretch; those after it by the pattern."""

    schedule_id: str
    cron: str | None
    timezone: str
    questions: tuple[Question, ...]
    cursor: datetime
    recorded: tuple[Outcome, ...]
    remembered_since: datetime
    """What fell due before is asked of the read model."""
    missed: tuple[Missed, ...]


class Match(Value):
    run_id: str
    occurrence: datetime | None
    recalled: Outcome | None = None
    """The outcome of an occurrence older than what the schedule remembers."""


class Found(Value):
    matches: tuple[Match, ...]


class Parenthood(Value):
    """What a schedule holds for its dependents."""

    outcomes: tuple[Outcome, ...] = ()
    missed: tuple[Missed, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    subscribers: tuple[str, ...] = ()
    """Dependents that have no pattern of their own: each occurrence is announced to them."""
    remembered_since: datetime

    def but(self, **changes: object) -> Parenthood:
        return self.model_copy(update=changes)


def lookup(parenthood: Parenthood, parent: Parent) -> Lookup | None:
    """What has to be looked up now, None when every question has its match. What parents drive has no pattern to
    look at: its questions wait until an occurrence of their dates has fallen due."""
    questions = unmatched(parenthood, parent.passed)
    if parent.is_driven:
        questions = tuple(q for q in questions if any(_shares(q.dates, o.dates) for o in parenthood.outcomes))
    if not questions:
        return None
    days = {day for question in questions for day in question.dates}
    return Lookup(
        schedule_id=parent.schedule_id,
        cron=parent.cron,
        timezone=parent.timezone,
        questions=questions,
        cursor=parent.passed,
        recorded=tuple(o for o in parenthood.outcomes if _shares(days, o.dates)),
        remembered_since=parenthood.remembered_since,
        missed=parenthood.missed,
    )


def look_up(request: Lookup, recalled: tuple[Outcome, ...]) -> Found:
    """Matches questions with occurrences; `recalled` are older outcomes than the schedule remembers. To be called
    where its answer is recorded: it depends on the zone data of the day."""
    known = {outcome.at: outcome for outcome in (*recalled, *request.recorded)}
    matches = []
    for question in request.questions:
        by_pattern = occurrences_on(request.cron, request.timezone, question.dates)
        candidates = {at for at in by_pattern if at > request.cursor or _is_missed(request, at)}
        candidates |= {o.at for o in known.values() if _shares(question.dates, o.dates)}
        at = match(candidates, question.instant)
        old = next((outcome for outcome in recalled if outcome.at == at), None)
        matches.append(Match(run_id=question.run_id, occurrence=at, recalled=old))
    return Found(matches=tuple(matches))


def _shares(some: Iterable[date], others: Iterable[date]) -> bool:
    return not set(some).isdisjoint(others)


def _is_missed(request: Lookup, at: datetime) -> bool:
    return any(stretch.first <= at <= stretch.last for stretch in request.missed)


def recorded(parenthood: Parenthood, occurrence: Occurrence, run: Run) -> Parenthood:
    outcome = Outcome(
        at=occurrence.at,
        dates=occurrence.local_dates,
        run_id=run.run_id,
        state=run.state,
        reason=run.reason,
        changed_at=run.changed_at,
    )
    outcomes = (*parenthood.outcomes, outcome)
    if len(outcomes) <= REMEMBERED_OUTCOMES:
        return parenthood.but(outcomes=outcomes)
    return parenthood.but(outcomes=outcomes[1:], remembered_since=outcomes[1].at)


def missed(parenthood: Parenthood, stretch: Missed) -> Parenthood:
    return parenthood.but(missed=(*parenthood.missed, stretch)[-REMEMBERED_STRETCHES:])


def followed(parenthood: Parenthood, run: Run) -> Parenthood:
    """One of its runs changed."""
    outcomes = tuple(
        outcome.model_copy(
            update={"state": run.state, "reason": run.reason, "changed_at": run.changed_at, "stands_in": run.stands_in}
        )
        if outcome.run_id == run.run_id
        else outcome
        for outcome in parenthood.outcomes
    )
    return parenthood.but(outcomes=outcomes)


def asked(parenthood: Parenthood, question: Question) -> Parenthood:
    """The same question again is answered again."""
    others = tuple(o for o in parenthood.questions if o.question.run_id != question.run_id)
    return parenthood.but(questions=(*others, OpenQuestion(question=question, occurrence=question.exactly)))


def rematch(parenthood: Parenthood) -> Parenthood:
    """The pattern changed: what has not fallen due yet has to be looked up again."""
    known = {outcome.at for outcome in parenthood.outcomes}
    questions = tuple(
        o if o.occurrence in known or o.question.exactly else o.model_copy(update={"occurrence": None})
        for o in parenthood.questions
    )
    return parenthood.but(questions=questions)


def unmatched(parenthood: Parenthood, passed: datetime) -> tuple[Question, ...]:
    """Questions without a match, and those whose match passed without falling due: it was paused or edited away."""
    return tuple(
        o.question
        for o in parenthood.questions
        if o.occurrence is None or (o.occurrence <= passed and _outcome(parenthood, o.occurrence) is None)
    )


def matched(
    parenthood: Parenthood, found: Found, now: datetime, parent: Parent
) -> tuple[Parenthood, tuple[TellDependent, ...]]:
    """Takes in what was looked up. A question without any occurrence on its dates is answered: absent."""
    by_run = {one.run_id: one for one in found.matches}
    kept: list[OpenQuestion] = []
    letters: list[TellDependent] = []
    recalled = [one.recalled for one in found.matches if one.recalled is not None]
    for open_question in parenthood.questions:
        one = by_run.get(open_question.question.run_id)
        if one is None:
            kept.append(open_question)
        elif one.occurrence is None:
            absent = ParentWait(
                schedule_id=parent.schedule_id, name=parent.name, status=WaitStatus.ABSENT, since=now, told_at=now
            )
            letters.append(_letter(open_question.question, absent))
        else:
            kept.append(open_question.model_copy(update={"occurrence": one.occurrence}))
    outcomes = (*recalled, *parenthood.outcomes)
    return parenthood.but(questions=tuple(kept), outcomes=outcomes), tuple(letters)


def answers(parenthood: Parenthood, now: datetime, parent: Parent) -> tuple[Parenthood, tuple[TellDependent, ...]]:
    """What can be said now that has not been said. A question is done with its conclusive answer."""
    kept: list[OpenQuestion] = []
    letters: list[TellDependent] = []
    for open_question in parenthood.questions:
        said = _state_of(parenthood, open_question, now, parent)
        if said is not None and not _same(said, open_question.told):
            letters.append(_letter(open_question.question, said))
            open_question = open_question.model_copy(update={"told": said})
        if said is None or said.status is not WaitStatus.ENDED or said.run_state is RunState.UNKNOWN:
            kept.append(open_question)
    return parenthood.but(questions=tuple(kept)), tuple(letters)


def _state_of(parenthood: Parenthood, open_question: OpenQuestion, now: datetime, parent: Parent) -> ParentWait | None:
    at = open_question.occurrence
    if at is None:
        return None
    said = ParentWait(
        schedule_id=parent.schedule_id,
        name=parent.name,
        status=WaitStatus.NOT_DUE,
        occurrence=at,
        since=now,
        told_at=now,
    )
    outcome = _outcome(parenthood, at)
    if outcome is None:
        return said
    ended = outcome.state in FINAL_STATES
    return said.model_copy(
        update={
            "status": WaitStatus.ENDED if ended else WaitStatus.OPEN,
            "run_id": outcome.run_id,
            "run_state": outcome.state,
            "reason": outcome.reason,
            "ended_at": outcome.changed_at if ended else None,
            "since": outcome.changed_at,
        }
    )


def _outcome(parenthood: Parenthood, at: datetime) -> Outcome | None:
    """What became of the occurrence, followed to the run that stands for it."""
    outcome = next((outcome for outcome in parenthood.outcomes if outcome.at == at), None)
    if outcome is None:
        stretch = next((stretch for stretch in parenthood.missed if stretch.first <= at <= stretch.last), None)
        return None if stretch is None else _missed_outcome(stretch, at)
    seen: set[str] = set()
    while outcome.reason in FOLLOWED and outcome.stands_in is not None and outcome.run_id not in seen:
        seen.add(outcome.run_id)
        stand_in = next((o for o in parenthood.outcomes if o.run_id == outcome.stands_in), None)
        if stand_in is None:
            return outcome
        outcome = stand_in
    return outcome


def _missed_outcome(stretch: Missed, at: datetime) -> Outcome:
    return Outcome(at=at, dates=(), run_id="", state=RunState.SKIPPED, reason="missed", changed_at=stretch.last)


def _same(said: ParentWait, told: ParentWait | None) -> bool:
    if told is None:
        return False
    return said.model_copy(update={"since": told.since, "told_at": told.told_at}) == told


def _letter(question: Question, said: ParentWait) -> TellDependent:
    return TellDependent(schedule_id=question.dependent_id, answer=Answer(run_id=question.run_id, parent=said))
