"""What a schedule's runs tell it, and what follows from their ends."""

from __future__ import annotations

from datetime import datetime

from domain.events import RunChanged
from domain.run import Advanced, RunState
from domain.schedule import Block, RunSummary
from domain.schedule_state import ScheduleState, withdraw


def run_reported(state: ScheduleState, changes: tuple[Advanced, ...], now: datetime) -> ScheduleState:
    """A run waits for its lane, or ended. Its end may block the schedule; the first cause is kept."""
    for change in changes:
        state = _run_changed(state, change)
        run = change.run
        if run.blocks and state.blocked is None and not state.deleted:
            block = Block(reason=run.reason or run.state, run_id=run.run_id, since=now)
            state = withdraw(
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
