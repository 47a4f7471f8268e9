"""Between a schedule and its lane: sending runs there, and keeping its own runs apart when the lane changed.

Runs of one schedule never overlap. On one lane the lane sees to that. When an edit sends the schedule to another
lane while a run of it still goes on in the old one, what falls due meets the collision policy here, at a gate
that is held by the old run; its end opens the gate.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain import lane
from domain.lane import Lane, LaneDecision, LaneEntry, Launch
from domain.run import Advanced, Run, RunState, hand_over
from domain.schedule import lane_of
from domain.schedule_mail import DropFromLane, RequestLane, WithdrawFromLane
from domain.schedule_state import OpenRun, Revision, ScheduleState, changed

OFFER_AGAIN = timedelta(minutes=67)
"""Requests don't get lost, but their lane may have been ended by hand. Not a full hour, because that is when everybody
else is busy."""


def request_lane(state: ScheduleState, change: Advanced, revision: Revision, now: datetime) -> ScheduleState:
    """Sends a newly recorded run to its lane, or to the gate."""
    entry = _entry(change.run, revision, state.heartbeat_seconds)
    target_lane = lane_of(revision.definition, revision.target, state.schedule_id)
    state = changed(state, change)
    elsewhere = next((open_run for open_run in state.open_runs if open_run.lane != target_lane), None)
    opened = OpenRun(lane=target_lane, entry=entry, offer_again_at=now + OFFER_AGAIN)
    state = state.but(open_runs=(*state.open_runs, opened))
    if state.gate is None and elsewhere is None:
        return _send(state, entry)
    gate = state.gate
    if gate is None:
        assert elsewhere is not None
        gate = Lane(holder=entry.model_copy(update={"run": elsewhere.run}))
    return _at_gate(state, lane.arrive(gate, entry, now))


def withdraw(
    state: ScheduleState, now: datetime, reason: str, message: str, *, only_occurrences: bool = False
) -> ScheduleState:
    """Drops what this schedule has waiting, here and in its lanes; those answer with the runs they ended."""
    lanes = dict.fromkeys(open_run.lane for open_run in state.open_runs)
    letters = tuple(
        WithdrawFromLane(lane=name, reason=reason, message=message, only_occurrences=only_occurrences) for name in lanes
    )
    state = state.but(mail=(*state.mail, *letters))
    if state.gate is None:
        return state
    decision = lane.withdrawn(state.gate, state.schedule_id, now, reason, message, only_occurrences=only_occurrences)
    return _at_gate(state, decision)


def drop_from_lane(state: ScheduleState, run_id: str, by: str, now: datetime) -> ScheduleState:
    """Takes one run off the line, at the gate or in the lane to which it was sent."""
    if state.gate is not None and any(entry.run.run_id == run_id for entry in state.gate.waiting):
        return _at_gate(state, lane.dropped(state.gate, run_id, now, by))
    names = [open_run.lane for open_run in state.open_runs if open_run.run.run_id == run_id]
    return state.but(mail=(*state.mail, *(DropFromLane(lane=name, run_id=run_id, by=by) for name in names)))


def run_ended(state: ScheduleState, run: Run, now: datetime) -> ScheduleState:
    """Its end opens the gate that it held."""
    if state.gate is None:
        return state
    return _at_gate(state, lane.released(state.gate, run.run_id, now))


def gate_tick(state: ScheduleState, now: datetime) -> ScheduleState:
    if state.gate is None:
        return state
    wake = lane.next_wake(state.gate)
    return state if wake is None or wake > now else _at_gate(state, lane.tick(state.gate, now))


def offered_again(state: ScheduleState, now: datetime, *, early: bool = False) -> ScheduleState:
    """Sends the lanes once more what has been open for long, or all of it: a lane that knows a run ignores it, and one
    that was started anew after somebody had ended it learns what it should know."""
    for each in _in_lanes(state):
        if early or each.offer_again_at <= now:
            letter, sent = _asking(each, again=True)
            sent = sent.model_copy(update={"offer_again_at": now + OFFER_AGAIN})
            state = _with(state.but(mail=(*state.mail, letter)), sent)
    return state


def next_offer(state: ScheduleState) -> datetime | None:
    """When what waits in a lane is offered again. What runs reports by itself, and is worth no timer."""
    waiting = (each for each in _in_lanes(state) if each.run.state is RunState.WAITING)
    return min((each.offer_again_at for each in waiting), default=None)


def _in_lanes(state: ScheduleState) -> list[OpenRun]:
    at_gate = {entry.run.run_id for entry in state.gate.waiting} if state.gate is not None else set()
    return [open_run for open_run in state.open_runs if open_run.run.run_id not in at_gate]


def _at_gate(state: ScheduleState, decision: LaneDecision) -> ScheduleState:
    waiting = decision.lane.waiting
    state = state.but(gate=decision.lane if waiting or decision.started is None else None)
    for change in decision.changes:
        state = _followed(changed(state, change), change.run)
    return _send(state, decision.started) if decision.started else state


def _followed(state: ScheduleState, run: Run) -> ScheduleState:
    kept = tuple(
        open_run.became(run) if open_run.run.run_id == run.run_id else open_run for open_run in state.open_runs
    )
    return state.but(open_runs=tuple(open_run for open_run in kept if not open_run.run.is_final))


def _send(state: ScheduleState, entry: LaneEntry) -> ScheduleState:
    open_run = next(each for each in state.open_runs if each.run.run_id == entry.run.run_id)
    letter, sent = _asking(open_run.model_copy(update={"entry": entry}))
    return _with(state.but(mail=(*state.mail, letter)), sent)


def _asking(open_run: OpenRun, *, again: bool = False) -> tuple[RequestLane, OpenRun]:
    """Each lane that is asked gets numbers of its own: one that is gone may have used its."""
    run = open_run.run.model_copy(update={"seq": max(open_run.run.seq, open_run.handed)})
    handed = hand_over(run)
    entry = open_run.entry.model_copy(update={"run": handed})
    sent = open_run.model_copy(update={"handed": handed.seq})
    return RequestLane(lane=open_run.lane, entry=entry, again=again), sent


def _with(state: ScheduleState, open_run: OpenRun) -> ScheduleState:
    kept = tuple(open_run if each.run.run_id == open_run.run.run_id else each for each in state.open_runs)
    return state.but(open_runs=kept)


def _entry(run: Run, revision: Revision, heartbeat_seconds: int) -> LaneEntry:
    definition = revision.definition
    launch = Launch(
        payload=definition.payload,
        lateness_seconds=definition.lateness_seconds,
        execution_timeout_seconds=definition.execution_timeout_seconds,
        heartbeat_seconds=heartbeat_seconds,
    )
    return LaneEntry(run=run, launch=launch, policy=definition.collision_policy, priority=definition.priority)
