"""Schedules and runs for the tests, as the workflows would tell them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from domain.events import RunChanged, ScheduleChanged
from domain.occurrences import Occurrence
from domain.run import Advanced, Origin, Run, RunState, advance, hand_over, note, record
from domain.schedule import Condition, ScheduleDefinition, ScheduleView

T0 = datetime(2027, 3, 14, 7, 0, tzinfo=UTC)
WORKSPACE = "desk"


def schedule_view(schedule_id: str, *, name: str | None = None, seq: int = 1, **changes: Any) -> ScheduleView:
    definition = ScheduleDefinition(
        name=name or f"finance/{schedule_id}",
        cron="0 3 * * *",
        timezone="America/New_York",
        payload={"pipeline": "finance/close", "version": "current"},
    )
    view = ScheduleView(
        schedule_id=schedule_id,
        workspace=WORKSPACE,
        revision=1,
        seq=seq,
        definition=definition,
        target="pipeline/finance/close",
        condition=Condition.ACTIVE,
        paused=False,
        blocked=None,
        acknowledgement=None,
        next_due_at=T0,
        upcoming=(Occurrence(at=T0, nominal=(datetime(2027, 3, 14, 3, 0),), kind="ordinary"),),  # noqa: DTZ001
        tzdata_version="2026f",
        open_runs=(),
        last_run=None,
        last_missed=None,
        created_at=T0,
        created_by="ada",
        changed_at=T0 + timedelta(seconds=seq),
        changed_by="ada",
    )
    return view.model_copy(update=changes)


def schedule_changed(schedule_id: str, **values: Any) -> ScheduleChanged:
    return ScheduleChanged(schedule=schedule_view(schedule_id, **values))


def a_run(schedule_id: str, number: int = 0, **changes: Any) -> Run:
    at = T0 + timedelta(minutes=number)
    run = Run(
        run_id=f"{schedule_id}-{number:04}",
        workspace=WORKSPACE,
        schedule_id=schedule_id,
        schedule_name=f"finance/{schedule_id}",
        schedule_revision=1,
        origin=Origin.CRON,
        scheduled_for=at,
        reference_time=at,
        reference_zone="America/New_York",
        executor="pipeline",
        target="pipeline/finance/close",
        state=RunState.QUEUED,
        recorded_at=at,
        changed_at=at,
    )
    return run.model_copy(update=changes)


def whole_life(run: Run) -> tuple[RunChanged, ...]:
    """From its record to its end, over the hands of three owners."""
    at = run.recorded_at
    recorded = record(run, priority=5)
    noted = note(hand_over(recorded.run), "retry", at + timedelta(seconds=1), "No free slot.")
    starting = advance(hand_over(noted.run), RunState.STARTING, at + timedelta(seconds=2), execution_id="e-1")
    running = advance(starting.run, RunState.RUNNING, at + timedelta(seconds=2))
    ended = advance(running.run, RunState.SUCCEEDED, at + timedelta(seconds=9))
    return tuple(told(change) for change in (recorded, noted, starting, running, ended))


def told(change: Advanced) -> RunChanged:
    return RunChanged(change=change)
