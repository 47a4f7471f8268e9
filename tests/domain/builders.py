"""Small ways to say what a test is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from domain.lane import LaneEntry, Launch
from domain.occurrences import Occurrence
from domain.run import Origin, Run, RunState
from domain.schedule import CollisionPolicy, PlannedOccurrence, ScheduleDefinition

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def at(clock: str, day: int = 1) -> datetime:
    """`at("09:30")` on 2026-12-01 in UTC."""
    return datetime.fromisoformat(f"2026-12-{day:02}T{clock}").replace(tzinfo=UTC)


def planned(instant: datetime, **changes: Any) -> PlannedOccurrence:
    occurrence = Occurrence(at=instant, nominal=(instant.replace(tzinfo=None),), kind="ordinary")
    return PlannedOccurrence(occurrence=occurrence, start_by=instant + timedelta(days=1), **changes)


def definition(**changes: Any) -> ScheduleDefinition:
    fields: dict[str, Any] = {
        "name": "finance/close",
        "cron": "0 * * * *",
        "timezone": "Africa/Abidjan",
        "payload": {"pipeline": "finance/close", "version": "current"},
    }
    return ScheduleDefinition(**(fields | changes))


def run(schedule: str = "s1", scheduled_for: datetime | None = NOON, **changes: Any) -> Run:
    reference = scheduled_for or NOON
    fields: dict[str, Any] = {
        "run_id": f"{schedule}-{reference:%Y%m%dT%H%M%SZ}",
        "workspace": "default",
        "schedule_id": schedule,
        "schedule_name": schedule,
        "schedule_revision": 1,
        "origin": Origin.CRON,
        "scheduled_for": scheduled_for,
        "reference_time": reference,
        "reference_zone": "Africa/Abidjan",
        "executor": "pipeline",
        "target": "pipeline:finance/close",
        "state": RunState.QUEUED,
        "recorded_at": reference,
        "changed_at": reference,
        "start_by": reference + timedelta(days=1),
    }
    return Run(**(fields | changes))


def entry(
    schedule: str = "s1",
    scheduled_for: datetime = NOON,
    policy: CollisionPolicy = CollisionPolicy.SKIP,
    priority: int = 5,
    **changes: Any,
) -> LaneEntry:
    launch = Launch(payload={}, lateness_seconds=600, execution_timeout_seconds=3600, heartbeat_seconds=30)
    return LaneEntry(run=run(schedule, scheduled_for, **changes), launch=launch, policy=policy, priority=priority)
