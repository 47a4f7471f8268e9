"""What a schedule's workflow holds, and how each thing that happens to it changes that.

Every function takes the state and answers the state that follows. What the world has to be told is part of
it: `outbox` are changes for the read model, `mail` is what its lane has to hear. Both are emptied only once
delivered, so neither an outage nor a restart loses one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from domain import ids, missed
from domain.errors import Conflict, Invalid
from domain.events import Event, RunChanged, ScheduleChanged
from domain.lane import LaneEntry, Launch
from domain.planning import LookAround, Seen
from domain.run import Advanced, Missed, Origin, Run, RunState, hand_over, record
from domain.schedule import (
    TIMING,
    TOUCHES_NOTHING,
    Backlog,
    Block,
    Condition,
    OccurrencePlan,
    PlannedOccurrence,
    RunSummary,
    ScheduleDefinition,
    ScheduleView,
    changed_fields,
)
from domain.values import Value

REMEMBERED_REQUESTS = 200


class RequestLane(Value):
    kind: Literal["request"] = "request"
    target: str
    entry: LaneEntry


class WithdrawFromLane(Value):
    kind: Literal["withdraw"] = "withdraw"
    target: str
    reason: str
    message: str
    only_occurrences: bool


Mail = Annotated[RequestLane | WithdrawFromLane, Field(discriminator="kind")]


class Revision(Value):
    """A definition that was in force until `until`. Kept only while occurrences due under it are unhandled."""

    until: datetime
    number: int
    definition: ScheduleDefinition
    target: str


class ScheduleState(Value):
    workspace: str
    schedule_id: str
    definition: ScheduleDefinition
    target: str
    revision: int = 1
    seq: int = 0
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str
    paused: bool = False
    blocked: Block | None = None
    deleted: bool = False
    cursor: datetime
    """Every occurrence up to here has been dealt with."""
    last_nominal: datetime | None = None
    """The latest local time dealt with under the present timing."""
    plan: OccurrencePlan | None = None
    """Absent when it has to be made anew."""
    earlier: tuple[Revision, ...] = ()
    open_runs: tuple[Run, ...] = ()
    last_run: RunSummary | None = None
    last_missed: Missed | None = None
    requests: tuple[Run, ...] = ()
    """The latest Run now requests as they were recorded, so that a repeated one answers the same run."""
    heartbeat_seconds: int = 30
    outbox: tuple[Event, ...] = ()
    mail: tuple[Mail, ...] = ()

    @property
    def condition(self) -> Condition:
        if self.deleted:
            return Condition.DELETED
        if self.blocked is not None:
            return Condition.BLOCKED
        return Condition.PAUSED if self.paused else Condition.ACTIVE

    @property
    def fires(self) -> bool:
        return self.condition is Condition.ACTIVE

    @property
    def next_planned(self) -> PlannedOccurrence | None:
        if not self.fires or self.plan is None:
            return None
        return next((planned for planned in self.plan.planned if planned.at > self.cursor), None)

    def but(self, **changes: object) -> ScheduleState:
        return self.model_copy(update=changes)


def create(
    workspace: str, schedule_id: str, definition: ScheduleDefinition, target: str, by: str, now: datetime
) -> ScheduleState:
    return ScheduleState(
        workspace=workspace,
        schedule_id=schedule_id,
        definition=definition,
        target=target,
        created_at=now,
        created_by=by,
        changed_at=now,
        changed_by=by,
        cursor=now,
    )


def view(state: ScheduleState) -> ScheduleView:
    planned = state.next_planned
    upcoming = state.plan.planned if state.plan and state.fires else ()
    return ScheduleView(
        schedule_id=state.schedule_id,
        workspace=state.workspace,
        revision=state.revision,
        seq=state.seq,
        definition=state.definition,
        target=state.target,
        condition=state.condition,
        paused=state.paused,
        blocked=state.blocked,
        next_due_at=planned.at if planned else None,
        upcoming=tuple(p.occurrence for p in upcoming if p.at > state.cursor)[:5],
        tzdata_version=state.plan.tzdata_version if state.plan else None,
        open_runs=tuple(RunSummary.of(run) for run in state.open_runs),
        last_run=state.last_run,
        last_missed=state.last_missed,
        created_at=state.created_at,
        created_by=state.created_by,
        changed_at=state.changed_at,
        changed_by=state.changed_by,
    )


def announced(state: ScheduleState) -> ScheduleState:
    """Puts the schedule's present view into the outbox, in place of an older one that is still there."""
    numbered = state.but(seq=state.seq + 1)
    others = tuple(event for event in numbered.outbox if not isinstance(event, ScheduleChanged))
    return numbered.but(outbox=(*others, ScheduleChanged(schedule=view(numbered))))


# What people do ------------------------------------------------------------------------------------------


def check_revision(state: ScheduleState, expected: int) -> None:
    if expected != state.revision:
        raise Conflict(
            "schedule.revision_conflict",
            f"The schedule is at revision {state.revision}, not {expected}: somebody changed it in between. "
            "Read it again and repeat the change.",
            field="revision",
            current=state.revision,
        )


def revise(state: ScheduleState, definition: ScheduleDefinition, target: str, by: str, now: datetime) -> ScheduleState:
    """Replaces the definition. New timing counts from now; what is pending was meant otherwise and is dropped,
    unless only words were changed. What fell due before the edit is still the earlier revision's."""
    changed = changed_fields(state.definition, definition)
    if not changed and target == state.target:
        return state
    revised = state.but(
        definition=definition, target=target, revision=state.revision + 1, changed_at=now, changed_by=by
    )
    if changed <= TOUCHES_NOTHING and target == state.target:
        return revised
    revised = _withdraw(
        revised, state.target, "schedule_edited", "The schedule was edited while it was pending.", only_occurrences=True
    )
    if changed & TIMING:
        return _recomputed(revised, now)
    earlier = Revision(until=now, number=state.revision, definition=state.definition, target=state.target)
    return revised.but(earlier=(*state.earlier, earlier), plan=None)


def pause(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    if state.paused:
        return state
    paused = state.but(paused=True, changed_at=now, changed_by=by)
    return _withdraw(
        paused, state.target, "schedule_paused", "The schedule was paused while it was pending.", only_occurrences=True
    )


def resume(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    """Paused time is never missed: it counts from now. A block stays."""
    if not state.paused:
        return state
    return _recomputed(state.but(paused=False, changed_at=now, changed_by=by), now)


def unblock(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    if state.blocked is None:
        return state
    return _recomputed(state.but(blocked=None, changed_at=now, changed_by=by), now)


def replan(state: ScheduleState, now: datetime) -> ScheduleState:
    """The zone data changed: what the old plan has due is dealt with as planned, the rest is planned anew. Local
    times already dealt with are not repeated, so nothing is missed and nothing runs twice."""
    backlog = planned_backlog(state, now) if state.fires else None
    settled = due(state, backlog, now) if backlog else state
    return settled.but(cursor=max(now, settled.cursor), plan=None)


def delete(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    deleted = state.but(deleted=True, plan=None, changed_at=now, changed_by=by)
    return _withdraw(
        deleted,
        state.target,
        "schedule_deleted",
        "The schedule was deleted while it was pending.",
        only_occurrences=False,
    )


def check_run_now(state: ScheduleState, key: str) -> Run | None:
    """The run that this request already made, None when it may make one, or a refusal."""
    known = known_request(state, key)
    if known is not None:
        return known
    if state.blocked is not None:
        raise Conflict(
            "schedule.blocked",
            f"The schedule is blocked ({state.blocked.reason}, run {state.blocked.run_id}). "
            "Look at that run, then unblock the schedule.",
            run_id=state.blocked.run_id,
        )
    if state.open_runs:
        active = state.open_runs[0]
        raise Conflict(
            "schedule.run.overlap",
            f"The schedule's run {active.run_id} is still {active.state}. Wait for its end, or cancel it.",
            run_id=active.run_id,
        )
    return None


def known_request(state: ScheduleState, key: str) -> Run | None:
    run_id = ids.run_now_id(state.schedule_id, key)
    return next((run for run in state.requests if run.run_id == run_id), None)


def run_now(state: ScheduleState, key: str, by: str, now: datetime) -> tuple[ScheduleState, Run]:
    """Records a run at a person's or a service's request; its reference time is the request's."""
    run = _new_run(state, ids.run_now_id(state.schedule_id, key), Origin.RUN_NOW, now, reference_time=now)
    requested = _request_lane(state, record(run, by=by), _current(state, now))
    kept = (*state.requests, run)[-REMEMBERED_REQUESTS:]
    return requested.but(requests=kept), run


def refused_run_now(state: ScheduleState, key: str, refusal: Conflict, by: str, now: datetime) -> ScheduleState:
    """A Run now that came as a signal has nobody to be refused to: a row says what became of it."""
    reason = "schedule_blocked" if refusal.code == "schedule.blocked" else "overlap"
    run = _new_run(state, ids.run_now_id(state.schedule_id, key), Origin.RUN_NOW, now, reference_time=now)
    skipped = run.model_copy(
        update={"state": RunState.SKIPPED, "reason": reason, "message": refusal.message, "ended_at": now}
    )
    return _changed(state, record(skipped, by=by)).but(requests=(*state.requests, skipped)[-REMEMBERED_REQUESTS:])


# What time does ------------------------------------------------------------------------------------------


def planned_backlog(state: ScheduleState, now: datetime) -> Backlog | None:
    """What fell due since the cursor, as far as the plan reaches."""
    due = [p for p in state.plan.planned if state.cursor < p.at <= now] if state.plan else []
    if not due:
        return None
    previous = due[-2].at if len(due) > 1 else None
    return Backlog(count=len(due), first=due[0].at, previous=previous, latest=due[-1])


def look_around(state: ScheduleState, now: datetime) -> LookAround | None:
    """What the plan does not tell and has to be looked up, None while it tells enough. The plan holds as far as it
    reaches, so only what lies beyond its end is asked for."""
    if not state.fires:
        return None
    reach = state.cursor
    if state.plan is not None:
        if not state.plan.planned or state.plan.planned[-1].at > now:
            return None
        reach = max(state.cursor, state.plan.planned[-1].at)
    return LookAround(
        cron=state.definition.cron,
        timezone=state.definition.timezone,
        max_start_delay_minutes=state.definition.max_start_delay_minutes,
        start_deadline=state.definition.start_deadline,
        after=reach,
        now=max(now, reach),
        last_nominal=_last_nominal(state, now),
    )


def seen(state: ScheduleState, found: Seen, now: datetime) -> ScheduleState:
    """Takes in what was looked up: deals with what is due, by the old plan and beyond it, and keeps the new plan."""
    backlog = _joined(planned_backlog(state, now), found.backlog)
    state = state.but(plan=found.plan)
    return due(state, backlog, now) if backlog else state


def due(state: ScheduleState, backlog: Backlog, now: datetime) -> ScheduleState:
    """Decides what becomes of everything that fell due since the cursor, and moves the cursor."""
    revision = _in_force(state, backlog.latest.at)
    policy = revision.definition
    decision = missed.decide(
        backlog,
        policy.missed_policy,
        now,
        lateness_seconds=policy.lateness_seconds,
        catch_up_max_age_seconds=policy.catch_up_max_age_seconds,
    )
    nominal = backlog.latest.occurrence.nominal[-1]
    state = state.but(cursor=max(now, state.cursor), last_nominal=nominal, earlier=())
    if decision.missed is not None:
        state = _missed(state, decision.missed, now)
    if decision.run is None:
        return state
    occurrence = decision.run.occurrence
    run = _new_run(
        state,
        ids.occurrence_run_id(state.schedule_id, occurrence.at),
        decision.origin,
        now,
        reference_time=occurrence.at,
        scheduled_for=occurrence.at,
        nominal=occurrence.nominal,
        start_by=decision.run.start_by,
        revision=revision,
    )
    lateness = round((now - occurrence.at).total_seconds(), 3)
    return _request_lane(state, record(run, lateness_seconds=lateness), revision)


# What its runs tell --------------------------------------------------------------------------------------


def run_reported(state: ScheduleState, changes: tuple[Advanced, ...], now: datetime) -> ScheduleState:
    """A run waits for its lane, or ended. Its end may block the schedule; the first cause is kept."""
    for change in changes:
        state = _run_changed(state, change)
        run = change.run
        if run.blocks and state.blocked is None and not state.deleted:
            block = Block(reason=run.reason or run.state, run_id=run.run_id, since=now)
            state = _withdraw(
                state.but(blocked=block),
                state.target,
                "schedule_blocked",
                f"The schedule was blocked by run {run.run_id} while it was pending.",
                only_occurrences=False,
            )
    return state


def _run_changed(state: ScheduleState, change: Advanced) -> ScheduleState:
    run = change.run
    known = next((r for r in state.open_runs if r.run_id == run.run_id), None)
    state = state.but(outbox=(*state.outbox, RunChanged(change=change)))
    if known is not None and known.seq >= run.seq:
        return state
    others = tuple(r for r in state.open_runs if r.run_id != run.run_id)
    if not run.is_final:
        return state.but(open_runs=(*others, run)) if known is not None else state
    attempted = run.state is not RunState.SKIPPED
    return state.but(open_runs=others, last_run=RunSummary.of(run) if attempted else state.last_run)


# Parts ---------------------------------------------------------------------------------------------------


def _recomputed(state: ScheduleState, now: datetime) -> ScheduleState:
    return state.but(cursor=max(now, state.cursor), last_nominal=None, plan=None, earlier=())


def _last_nominal(state: ScheduleState, now: datetime) -> datetime | None:
    due_by_plan = planned_backlog(state, now)
    return due_by_plan.latest.occurrence.nominal[-1] if due_by_plan else state.last_nominal


def _joined(planned: Backlog | None, beyond: Backlog | None) -> Backlog | None:
    if planned is None or beyond is None:
        return planned or beyond
    previous = beyond.previous or planned.latest.at
    return Backlog(count=planned.count + beyond.count, first=planned.first, previous=previous, latest=beyond.latest)


def _current(state: ScheduleState, now: datetime) -> Revision:
    return Revision(until=now, number=state.revision, definition=state.definition, target=state.target)


def _in_force(state: ScheduleState, at: datetime) -> Revision:
    return next((earlier for earlier in state.earlier if at <= earlier.until), _current(state, at))


def _new_run(
    state: ScheduleState,
    run_id: str,
    origin: Origin,
    now: datetime,
    *,
    reference_time: datetime,
    scheduled_for: datetime | None = None,
    nominal: tuple[datetime, ...] = (),
    start_by: datetime | None = None,
    revision: Revision | None = None,
) -> Run:
    revision = revision or _current(state, now)
    return Run(
        run_id=run_id,
        workspace=state.workspace,
        schedule_id=state.schedule_id,
        schedule_name=revision.definition.name,
        schedule_revision=revision.number,
        origin=origin,
        scheduled_for=scheduled_for,
        nominal=nominal,
        reference_time=reference_time,
        reference_zone=revision.definition.timezone,
        executor=revision.definition.executor,
        target=revision.target,
        state=RunState.QUEUED,
        recorded_at=now,
        changed_at=now,
        start_by=start_by,
    )


def _missed(state: ScheduleState, stretch: Missed, now: datetime) -> ScheduleState:
    run = _new_run(
        state, ids.missed_run_id(state.schedule_id, stretch.first), Origin.CRON, now, reference_time=stretch.last
    )
    words = "1 occurrence" if stretch.count == 1 else f"{stretch.count} occurrences"
    summary = run.model_copy(
        update={
            "state": RunState.SKIPPED,
            "reason": "missed",
            "missed": stretch,
            "ended_at": now,
            "message": f"{words} fell due while nobody could act on them.",
        }
    )
    return _changed(state, record(summary)).but(last_missed=stretch)


def _changed(state: ScheduleState, change: Advanced) -> ScheduleState:
    return state.but(outbox=(*state.outbox, RunChanged(change=change)))


def _request_lane(state: ScheduleState, change: Advanced, revision: Revision) -> ScheduleState:
    definition = revision.definition
    launch = Launch(
        payload=definition.payload,
        lateness_seconds=definition.lateness_seconds,
        execution_timeout_seconds=definition.execution_timeout_seconds,
        heartbeat_seconds=state.heartbeat_seconds,
    )
    entry = LaneEntry(
        run=hand_over(change.run), launch=launch, policy=definition.collision_policy, priority=definition.priority
    )
    return _changed(state, change).but(
        open_runs=(*state.open_runs, change.run),
        mail=(*state.mail, RequestLane(target=revision.target, entry=entry)),
    )


def _withdraw(state: ScheduleState, target: str, reason: str, message: str, *, only_occurrences: bool) -> ScheduleState:
    """Asks the lane to drop what this schedule has waiting there; the lane answers with the runs it ended."""
    if not state.open_runs:
        return state
    letter = WithdrawFromLane(target=target, reason=reason, message=message, only_occurrences=only_occurrences)
    return state.but(mail=(*state.mail, letter))


def check_live(state: ScheduleState | None) -> ScheduleState:
    if state is None or state.deleted:
        raise Invalid("schedule.not_found", "There is no such schedule.")
    return state
