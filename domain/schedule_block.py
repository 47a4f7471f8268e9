"""What stops a schedule until a person looks: the end of a run, or its own definition."""

from __future__ import annotations

from datetime import datetime

from domain import schedule_dependent
from domain.run import Run
from domain.schedule import DEFINITION_INVALID, Block
from domain.schedule_lane import withdraw
from domain.schedule_state import ScheduleState


def blocked_by_run(state: ScheduleState, run: Run, lane: str, now: datetime) -> ScheduleState:
    """The first cause is kept. The lane is remembered, for an unknown run may still hold it."""
    if not run.blocks or state.blocked is not None or state.deleted:
        return state
    block = Block(reason=run.reason or run.state, run_id=run.run_id, since=now, message=run.message)
    message = f"The schedule was blocked by run {run.run_id} while it was pending."
    return _blocked(state.but(blocked_lane=lane), block, now, message)


def blocked_by_definition(state: ScheduleState, refusal: str, now: datetime) -> ScheduleState:
    """A definition that was kept is no longer accepted, say after an upgrade: asking again would not change that, and
    other schedules must not suffer for it. `refusal` says what is wrong with it."""
    if state.blocked is not None or state.deleted:
        return state
    block = Block(reason=DEFINITION_INVALID, run_id=None, since=now, message=refusal)
    return _blocked(state.but(plan=None), block, now, f"The schedule's definition is not accepted: {refusal}")


def _blocked(state: ScheduleState, block: Block, now: datetime, message: str) -> ScheduleState:
    blocked = withdraw(state.but(blocked=block), now, "schedule_blocked", message)
    return schedule_dependent.dropped(blocked, now, "schedule_blocked", message)
