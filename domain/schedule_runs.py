"""What a schedule's runs tell it, and what follows from their ends."""

from __future__ import annotations

from datetime import datetime

from domain import schedule_parent
from domain.run import Advanced, Run, RunState
from domain.schedule import RunSummary
from domain.schedule_block import blocked_by_run
from domain.schedule_lane import run_ended
from domain.schedule_state import ScheduleState, changed


def run_reported(state: ScheduleState, changes: tuple[Advanced, ...], now: datetime) -> ScheduleState:
    """A run waits for its lane, or ended. Its end may block the schedule; the first cause is kept."""
    for change in changes:
        state = _run_changed(state, change, now)
    return state


def _run_changed(state: ScheduleState, change: Advanced, now: datetime) -> ScheduleState:
    """A report that was heard before, or that is about a run long ended, is passed on and decides nothing."""
    run = change.run
    # A run's own times are its worker's; delays of dependents count by the one clock that every schedule shares.
    heard = schedule_parent.followed(state.parenthood, run.model_copy(update={"changed_at": now}))
    state = changed(state.but(parenthood=heard), change)
    known = next((open_run for open_run in state.open_runs if open_run.run.run_id == run.run_id), None)
    if known is None:
        return _late_truth(state, run)
    if known.run.seq >= run.seq:
        return state
    others = tuple(open_run for open_run in state.open_runs if open_run is not known)
    if not run.is_final:
        return state.but(open_runs=(*others, known.became(run)))
    if run.state is not RunState.SKIPPED:
        state = state.but(last_run=RunSummary.of(run))
    return run_ended(blocked_by_run(state.but(open_runs=others), run, known.lane, now), run, now)


def _late_truth(state: ScheduleState, run: Run) -> ScheduleState:
    if state.last_run is None or state.last_run.run_id != run.run_id or state.last_run.at >= run.changed_at:
        return state
    return state.but(last_run=RunSummary.of(run))
