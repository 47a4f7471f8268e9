"""What a schedule does that depends on others: has its occurrences wait, asks the parents, and decides by their
answers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from domain import collision, dependency, ids
from domain.dependency import Answer, Question, Verdict
from domain.run import Advanced, Origin, ParentWait, Run, RunState, WaitStatus, advance, note, record
from domain.schedule import CollisionPolicy, ScheduleDefinition
from domain.schedule_fell_due import fell_due
from domain.schedule_lane import request_lane
from domain.schedule_mail import AskParent, ParentDue, Subscribe
from domain.schedule_state import Revision, ScheduleState, WaitingRun, changed, current, new_run

ASK_AGAIN = timedelta(minutes=67)
"""Answers don't get lost, but a parent may have been ended and started anew by hand. Not a full hour, because that is
when everybody else is busy."""

REMEMBERED_DRIVEN = 400


def wait(state: ScheduleState, run: Run, revision: Revision, now: datetime, question: Question) -> ScheduleState:
    """Records an occurrence that waits for its parents, and asks them. An older one that still waits meets the
    newer under the collision policy."""
    parents = tuple(ParentWait(schedule_id=parent, since=now) for parent in revision.definition.parents)
    waiting = run.model_copy(update={"state": RunState.WAITING, "reason": "dependency", "waits_for": parents})
    change = record(waiting)
    newer = WaitingRun(run=waiting, revision=revision, question=question, ask_again_at=now + ASK_AGAIN)
    state = changed(state, change)
    if not state.waiting:
        return _ask(state.but(waiting=(newer,)), newer)
    return _collided(state, state.waiting[0], newer, revision.definition.collision_policy, now)


def _collided(
    state: ScheduleState, older: WaitingRun, newer: WaitingRun, policy: CollisionPolicy, now: datetime
) -> ScheduleState:
    match policy:
        case CollisionPolicy.QUEUE_LATEST:
            state, run = _settled_due(state, older)
            state = changed(state, collision.superseded(run, newer.run, now))
            return _ask(state.but(waiting=(newer,)), newer)
        case CollisionPolicy.SKIP | CollisionPolicy.RETRY:
            state, run = _settled_due(state, newer)
            return changed(state, collision.gave_way(older.run, run, now))
        case CollisionPolicy.COALESCE:
            state, run = _settled_due(state, newer)
            kept, ended = collision.folded(older.run, run, now)
            state = changed(changed(state, kept), ended)
            return state.but(waiting=(older.model_copy(update={"run": kept.run}),))


def heard(state: ScheduleState, answers: tuple[Answer, ...], now: datetime) -> ScheduleState:
    """Takes in what parents answered, one trail row for all that came together."""
    for waiting in state.waiting:
        told = {a.parent.schedule_id: a.parent for a in answers if a.run_id == waiting.run.run_id}
        parents = tuple(
            dependency.learned(known, told[known.schedule_id]) if known.schedule_id in told else known
            for known in waiting.run.waits_for
        )
        if parents != waiting.run.waits_for:
            state = _kept(
                state, waiting, note(waiting.run, "parents_answered", now, _progress(parents), waits_for=parents)
            )
    return state


def decide(state: ScheduleState, now: datetime) -> ScheduleState:
    """Ends, delays or releases what waits, as its parents' ends and the clock have it."""
    for waiting in state.waiting:
        state = _decide_one(state, waiting, now)
    return state


def next_wake(state: ScheduleState) -> datetime | None:
    times = [waiting.question.until for waiting in state.waiting]
    times += [waiting.ready_at or waiting.ask_again_at for waiting in state.waiting]
    return min(times, default=None)


def driven(state: ScheduleState, due: ParentDue, now: datetime, wait_until: datetime) -> ScheduleState:
    """A parent's occurrence fell due. With one parent that makes an occurrence of this schedule; with several, the
    first of a local date makes the one of that date, which waits for the last of each parent's."""
    if not state.fires or due.parent_id not in state.definition.parents:
        return state
    if len(state.definition.parents) == 1:
        return _driven_run(
            state,
            now,
            wait_until,
            run_id=ids.occurrence_run_id(state.schedule_id, due.at),
            dates=due.dates,
            scheduled_for=due.at,
            nominal=due.nominal,
        )
    for day in due.dates:
        state = _driven_run(state, now, wait_until, run_id=ids.driven_run_id(state.schedule_id, day), dates=(day,))
    return state


def _driven_run(
    state: ScheduleState,
    now: datetime,
    wait_until: datetime,
    *,
    run_id: str,
    dates: tuple[date, ...],
    scheduled_for: datetime | None = None,
    nominal: tuple[datetime, ...] = (),
) -> ScheduleState:
    if run_id in state.driven_runs:
        return state
    revision = current(state, now)
    start_by = now + timedelta(minutes=revision.definition.max_start_delay_minutes)
    run = new_run(
        state,
        run_id,
        Origin.CRON,
        now,
        reference_time=scheduled_for or now,
        scheduled_for=scheduled_for,
        nominal=nominal,
        start_by=start_by,
    )
    question = Question(
        dependent_id=state.schedule_id,
        run_id=run_id,
        dates=dates,
        instant=None,
        exactly=scheduled_for,
        until=wait_until,
    )
    state = state.but(driven_runs=(*state.driven_runs, run_id)[-REMEMBERED_DRIVEN:])
    if scheduled_for is not None:
        state = fell_due(state.but(cursor=max(state.cursor, scheduled_for)), scheduled_for, nominal, run)
    return wait(state, run, revision, now, question)


def subscriptions(
    schedule_id: str, before: ScheduleDefinition | None, after: ScheduleDefinition | None
) -> tuple[Subscribe, ...]:
    """What parents have to be told when a schedule without a pattern of its own appears, changes or goes."""
    old = before.parents if before is not None and before.is_driven else ()
    new = after.parents if after is not None and after.is_driven else ()
    gone = tuple(Subscribe(schedule_id=p, subscriber=schedule_id, on=False) for p in old if p not in new)
    return (*gone, *(Subscribe(schedule_id=p, subscriber=schedule_id, on=True) for p in new if p not in old))


def dropped(
    state: ScheduleState, now: datetime, reason: str, message: str, *, only: str | None = None
) -> ScheduleState:
    """The schedule was paused, blocked, edited or deleted: what waits ends, or only the run of this id."""
    for waiting in state.waiting:
        if only in (None, waiting.run.run_id):
            state = _ended(state, waiting, now, reason, message)
    return state


def _decide_one(state: ScheduleState, waiting: WaitingRun, now: datetime) -> ScheduleState:
    definition, run = waiting.revision.definition, waiting.run
    delay = timedelta(minutes=definition.after_delay_minutes)
    settled = dependency.settle(run.waits_for, definition.after_terminal_status, delay)
    if settled.verdict is Verdict.FAILS and settled.parent is not None:
        return _ended(state, waiting, now, "parent_failed", _failure(settled.parent))
    if settled.verdict is Verdict.ABSENT and settled.parent is not None:
        message = f"{settled.parent.name or settled.parent.schedule_id} has no occurrence on that date."
        return _ended(state, waiting, now, "parent_absent", message)
    if waiting.question.until <= now:
        return _ended(state, waiting, now, "dependency_deadline", _unfinished(run))
    if settled.released_at is None:
        return _asked_again(state, waiting, now)
    if settled.released_at <= now:
        return _release(state, waiting, now)
    if waiting.ready_at is not None:
        return state
    message = f"All parents have ended; it waits {definition.after_delay_minutes} minutes more."
    delayed = advance(run, RunState.WAITING, now, kind="delayed", reason="delay", message=message)
    return _kept(state, waiting.model_copy(update={"ready_at": settled.released_at}), delayed)


def _release(state: ScheduleState, waiting: WaitingRun, now: datetime) -> ScheduleState:
    state, run = _settled_due(_without(state, waiting.run), waiting)
    message = "All its parents have ended as required."
    released = advance(run, RunState.QUEUED, now, kind="released", message=message)
    return request_lane(state, released, waiting.revision, now)


def _settled_due(state: ScheduleState, waiting: WaitingRun) -> tuple[ScheduleState, Run]:
    """The run as its wait ends. Driven by several parents it is due when the latest of their occurrences was, which
    is only known now; those that depend on it hear of it."""
    run = waiting.run
    if run.scheduled_for is not None:
        return state, run
    latest = max(
        (parent for parent in run.waits_for if parent.occurrence is not None and parent.nominal),
        key=lambda parent: parent.occurrence or run.reference_time,
        default=None,
    )
    due = latest.occurrence if latest is not None and latest.occurrence is not None else run.reference_time
    nominal = latest.nominal if latest else tuple(datetime.combine(day, time()) for day in waiting.question.dates)
    run = run.model_copy(update={"scheduled_for": due, "reference_time": due, "nominal": nominal})
    return fell_due(state.but(cursor=max(state.cursor, due)), due, nominal, run), run


def _asked_again(state: ScheduleState, waiting: WaitingRun, now: datetime) -> ScheduleState:
    if waiting.ask_again_at > now:
        return state
    later = waiting.model_copy(update={"ask_again_at": now + ASK_AGAIN})
    others = tuple(later if w.run.run_id == later.run.run_id else w for w in state.waiting)
    return _ask(state.but(waiting=others), later)


def _ask(state: ScheduleState, waiting: WaitingRun) -> ScheduleState:
    conclusive = {p.schedule_id for p in waiting.run.waits_for if dependency.is_conclusive(p)}
    letters = tuple(
        AskParent(schedule_id=parent, question=waiting.question)
        for parent in waiting.revision.definition.parents
        if parent not in conclusive
    )
    return state.but(letters=(*state.letters, *letters))


def _ended(state: ScheduleState, waiting: WaitingRun, now: datetime, reason: str, message: str) -> ScheduleState:
    state, run = _settled_due(_without(state, waiting.run), waiting)
    return changed(state, collision.skipped(run, now, reason, message))


def _kept(state: ScheduleState, waiting: WaitingRun, change: Advanced) -> ScheduleState:
    kept = waiting.model_copy(update={"run": change.run})
    others = tuple(kept if w.run.run_id == change.run.run_id else w for w in state.waiting)
    return changed(state.but(waiting=others), change)


def _without(state: ScheduleState, run: Run) -> ScheduleState:
    return state.but(waiting=tuple(w for w in state.waiting if w.run.run_id != run.run_id))


def _progress(parents: tuple[ParentWait, ...]) -> str:
    ended = sum(parent.status is WaitStatus.ENDED for parent in parents)
    return f"{ended} of {len(parents)} parents have ended."


def _failure(parent: ParentWait) -> str:
    outcome = f"{parent.run_state} ({parent.reason})" if parent.reason else f"{parent.run_state}"
    return f"{parent.name or parent.schedule_id} ended {outcome}: run {parent.run_id or 'none'}."


def _unfinished(run: Run) -> str:
    names = [p.name or p.schedule_id for p in run.waits_for if p.status is not WaitStatus.ENDED]
    return f"Still waiting for {', '.join(names[:5])}." if names else "It was still waiting out its delay."
