"""Between a schedule and its lane: sending runs there, and keeping its own runs apart when the lane changed.

Runs of one schedule never overlap. On one lane the lane sees to that. When an edit sends the schedule to another
lane while a run of it still goes on in the old one, what falls due meets the collision policy here, at a gate
that is held by the old run; its end opens the gate.
"""

from __future__ import annotations

from datetime import datetime

from domain import lane
from domain.lane import Lane, LaneDecision, LaneEntry, Launch
from domain.run import Advanced, Run, hand_over
from domain.schedule import lane_of
from domain.schedule_mail import DropFromLane, RequestLane, WithdrawFromLane
from domain.schedule_state import OpenRun, Revision, ScheduleState, changed


def request_lane(state: ScheduleState, change: Advanced, revision: Revision, now: datetime) -> ScheduleState:
    """Sends a newly recorded run to its lane, or to the gate."""
    entry = _entry(change.run, revision, state.heartbeat_seconds)
    target_lane = lane_of(revision.definition, revision.target, state.schedule_id)
    state = changed(state, change)
    elsewhere = next((open_run for open_run in state.open_runs if open_run.lane != target_lane), None)
    state = state.but(open_runs=(*state.open_runs, OpenRun(run=change.run, lane=target_lane)))
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


def _at_gate(state: ScheduleState, decision: LaneDecision) -> ScheduleState:
    waiting = decision.lane.waiting
    state = state.but(gate=decision.lane if waiting or decision.started is None else None)
    for change in decision.changes:
        state = _followed(changed(state, change), change.run)
    return _send(state, decision.started) if decision.started else state


def _followed(state: ScheduleState, run: Run) -> ScheduleState:
    kept = tuple(
        open_run.model_copy(update={"run": run}) if open_run.run.run_id == run.run_id else open_run
        for open_run in state.open_runs
    )
    return state.but(open_runs=tuple(open_run for open_run in kept if not open_run.run.is_final))


def _send(state: ScheduleState, entry: LaneEntry) -> ScheduleState:
    name = next(open_run.lane for open_run in state.open_runs if open_run.run.run_id == entry.run.run_id)
    handed = entry.model_copy(update={"run": hand_over(entry.run)})
    return state.but(mail=(*state.mail, RequestLane(lane=name, entry=handed)))


def _entry(run: Run, revision: Revision, heartbeat_seconds: int) -> LaneEntry:
    definition = revision.definition
    launch = Launch(
        payload=definition.payload,
        lateness_seconds=definition.lateness_seconds,
        execution_timeout_seconds=definition.execution_timeout_seconds,
        heartbeat_seconds=heartbeat_seconds,
    )
    return LaneEntry(run=run, launch=launch, policy=definition.collision_policy, priority=definition.priority)
