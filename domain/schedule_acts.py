"""What people and services do to a schedule. Each function answers the state that follows, or refuses."""

from __future__ import annotations

from datetime import datetime, timedelta

from domain import ids, schedule_dependent, schedule_parent
from domain.authority import check_not_system
from domain.errors import Conflict
from domain.run import Origin, Run, RunState, record
from domain.schedule import TIMING, TOUCHES_NOTHING, Moved, ScheduleDefinition, changed_fields
from domain.schedule_due import due, planned_backlog
from domain.schedule_lane import drop_from_lane, offered_again, request_lane, withdraw
from domain.schedule_mail import ReleaseLane
from domain.schedule_state import (
    REMEMBERED_REQUESTS,
    Revision,
    ScheduleState,
    acknowledged,
    begin,
    changed,
    current,
    new_run,
    recomputed,
    unfinished,
)


def create(
    workspace: str, schedule_id: str, definition: ScheduleDefinition, target: str, by: str, now: datetime
) -> ScheduleState:
    state = begin(workspace, schedule_id, definition, target, by, now)
    return state.but(letters=schedule_dependent.subscriptions(schedule_id, None, definition))


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
    edited = changed_fields(state.definition, definition)
    if not edited and target == state.target:
        return state
    revised = state.but(
        definition=definition,
        target=target,
        revision=state.revision + 1,
        changed_at=now,
        changed_by=by,
        acknowledgement=acknowledged(definition, state.acknowledgement, by, now),
    )
    if edited <= TOUCHES_NOTHING and target == state.target:
        return revised
    message = "The schedule was edited while it was pending."
    revised = withdraw(revised, now, "schedule_edited", message, only_occurrences=True)
    revised = schedule_dependent.dropped(revised, now, "schedule_edited", message)
    letters = schedule_dependent.subscriptions(state.schedule_id, state.definition, definition)
    revised = revised.but(letters=(*revised.letters, *letters))
    revised = revised.but(parenthood=schedule_parent.rematch(revised.parenthood))
    if edited & TIMING:
        return recomputed(revised, now)
    earlier = Revision(until=now, number=state.revision, definition=state.definition, target=state.target)
    return revised.but(earlier=(*state.earlier, earlier), plan=None)


def pause(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    if state.paused:
        return state
    paused = state.but(paused=True, changed_at=now, changed_by=by)
    return _dropped(paused, now, "schedule_paused", "The schedule was paused while it was waiting.")


def _dropped(state: ScheduleState, now: datetime, reason: str, message: str) -> ScheduleState:
    return schedule_dependent.dropped(withdraw(state, now, reason, message), now, reason, message)


def resume(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    """Paused time is never missed: it counts from now. A block stays."""
    if not state.paused:
        return state
    return recomputed(state.but(paused=False, changed_at=now, changed_by=by), now)


def unblock(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    if state.blocked is None:
        return state
    letters: tuple[ReleaseLane, ...] = ()
    if state.blocked_lane is not None and state.blocked.run_id is not None:
        letters = (ReleaseLane(lane=state.blocked_lane, run_id=state.blocked.run_id),)
    freed = state.but(blocked=None, blocked_lane=None, mail=(*state.mail, *letters), changed_at=now, changed_by=by)
    return recomputed(freed, now)


def set_workspace_active(state: ScheduleState, active: bool) -> ScheduleState:
    """While its workspace is inactive a schedule does nothing; what fell due meanwhile is then an outage's backlog."""
    return state if active is state.workspace_active else state.but(workspace_active=active, plan=None)


def replan(state: ScheduleState, now: datetime) -> ScheduleState:
    """The zone data changed: what the old plan has due is dealt with as planned, the rest is planned anew. Local
    times already dealt with are not repeated, so nothing is missed and nothing runs twice. Where more fell due than
    the old plan tells, as after an outage, all of it is counted by the new data. Lanes are offered once more what is
    open, as an operator expects who had to end one."""
    state = offered_again(state, now, early=True)
    if not state.fires or state.plan is None or not state.plan.planned or state.plan.planned[-1].at <= now:
        return state.but(plan=None)
    backlog = planned_backlog(state, now)
    settled = due(state, backlog, now) if backlog else state
    return settled.but(cursor=max(now, settled.cursor), plan=None)


def moved(before: ScheduleState, after: ScheduleState) -> tuple[Moved, ...]:
    """What a replan changed: the local times that were planned and not yet due, where their instant is
    another now. Only as far as both plans reach."""
    if before.plan is None or after.plan is None or not after.plan.planned:
        return ()
    instants = {nominal: planned.at for planned in after.plan.planned for nominal in planned.occurrence.nominal}
    reach = max(instants)
    return tuple(
        Moved(nominal=nominal, before=planned.at, after=instants.get(nominal))
        for planned in before.plan.planned
        for nominal in planned.occurrence.nominal
        if planned.at > after.cursor and nominal <= reach and instants.get(nominal) != planned.at
    )


def check_drop(state: ScheduleState, run_id: str) -> None:
    if all(run.run_id != run_id or run.state is not RunState.WAITING for run in unfinished(state)):
        raise Conflict(
            "run.not_waiting", "The run does not wait any more, so it can't be taken off the line.", field="run_id"
        )


def drop(state: ScheduleState, run_id: str, by: str, now: datetime) -> ScheduleState:
    """A person cancels one run that waits: for its parents or at the gate, which ends it here, or in its lane, which
    answers with how it ended."""
    message = f"{by} cancelled it while it waited."
    state = schedule_dependent.dropped(state, now, "operator", message, only=run_id)
    return drop_from_lane(state, run_id, by, now)


def delete(state: ScheduleState, by: str, now: datetime) -> ScheduleState:
    letters = schedule_dependent.subscriptions(state.schedule_id, state.definition, None)
    deleted = state.but(
        deleted=True,
        plan=None,
        letters=(*state.letters, *letters),
        parenthood=schedule_parent.rematch(state.parenthood),
        changed_at=now,
        changed_by=by,
    )
    return _dropped(deleted, now, "schedule_deleted", "The schedule was deleted while it was waiting.")


def check_run_now(state: ScheduleState, key: str, by: str) -> Run | None:
    """The run that this request already made, None when it may make one, or a refusal."""
    check_not_system(by)
    known = known_request(state, key)
    if known is not None:
        return known
    if state.blocked is not None:
        raise Conflict(
            "schedule.blocked",
            f"The schedule is blocked ({state.blocked.cause}). Look at what blocked it, then unblock the schedule.",
            run_id=state.blocked.run_id,
        )
    active = next(
        (run for run in unfinished(state) if run.state is not RunState.WAITING or not run.is_occurrence), None
    )
    if active is not None:
        raise Conflict(
            "schedule.run.overlap",
            f"The schedule's run {active.run_id} is still {active.state}. Wait for its end, or cancel it.",
            run_id=active.run_id,
        )
    return None


def known_request(state: ScheduleState, key: str) -> Run | None:
    run_id = ids.run_now_id(state.schedule_id, key)
    return next((run for run in state.requests if run.run_id == run_id), None)


def run_now(
    state: ScheduleState, key: str, by: str, now: datetime, origin: Origin = Origin.RUN_NOW
) -> tuple[ScheduleState, Run]:
    """Records a run at the request of a person, a service or a webhook; its reference time is the request's."""
    start_by = now + timedelta(minutes=state.definition.max_start_delay_minutes)
    run_id = ids.run_now_id(state.schedule_id, key)
    run = new_run(state, run_id, origin, now, reference_time=now, start_by=start_by)
    requested = request_lane(state, record(run, by=by), current(state, now), now)
    kept = (*state.requests, run)[-REMEMBERED_REQUESTS:]
    return requested.but(requests=kept), run


def refused_run_now(state: ScheduleState, key: str, refusal: Conflict, by: str, now: datetime) -> ScheduleState:
    """A Run now that came as a signal has nobody to be refused to: a row says what became of it."""
    reason = "schedule_blocked" if refusal.code == "schedule.blocked" else "overlap"
    run = new_run(state, ids.run_now_id(state.schedule_id, key), Origin.RUN_NOW, now, reference_time=now)
    skipped = run.model_copy(
        update={"state": RunState.SKIPPED, "reason": reason, "message": refusal.message, "ended_at": now}
    )
    return changed(state, record(skipped, by=by)).but(requests=(*state.requests, skipped)[-REMEMBERED_REQUESTS:])
