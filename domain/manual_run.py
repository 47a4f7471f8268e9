"""A manual run: a person runs a pipeline itself, and no schedule has anything to do with it.

It takes its turn on the pipeline's lane like every other run, waits there under no policy but its own age, and blocks
nothing when it goes wrong. What it runs is what the pipeline's current version is when its turn has come.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field, JsonValue

from domain import ids, zones
from domain.lane import LaneEntry, Launch
from domain.lost_run import Ending
from domain.messages import LaneRequest
from domain.run import Advanced, Origin, Run, RunState, advance, hand_over, record, seize
from domain.schedule import CollisionPolicy, ScheduleDefinition
from domain.values import Value

DEFAULTS = ScheduleDefinition.model_fields
"""What holds of a schedule that leaves it open holds here too."""

EXECUTOR = "pipeline"


class ManualRun(Value):
    """What a person asks for."""

    parameters: dict[str, JsonValue] = {}
    parameter_bindings: dict[str, JsonValue] = {}
    groups: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)] | None = None
    """Only these of the pipeline's groups; all without it."""
    step: str | None = None
    """Only this step; all without it."""
    timezone: str = "UTC"
    """The zone in which `TODAY` and `YESTERDAY` are computed."""
    execution_timeout_seconds: int = Field(default=DEFAULTS["execution_timeout_seconds"].default, ge=1, le=7 * 86_400)


def check(asked: ManualRun) -> None:
    """Raises Invalid for a zone that is none."""
    zones.load(asked.timezone)


def payload(pipeline: str, asked: ManualRun) -> dict[str, JsonValue]:
    """What the pipeline executor is given; what was not asked for is not in it."""
    given = asked.model_dump(mode="json", include={"parameters", "parameter_bindings", "groups", "step"})
    return {"pipeline": pipeline, "version": "current", **{key: value for key, value in given.items() if value}}


def abandoned(run: Run, *, claimed: bool, ending: Ending | None, by: str, now: datetime) -> Advanced:
    """A person cancels a run that neither a lane nor a workflow knows any more, because somebody has ended those by
    hand. `claimed` is whether its execution was ever launched, `ending` how that ended; unclaimed, it never can be."""
    run = seize(run)
    if not claimed:
        message = f"{by} cancelled it; its lane had been ended by hand, so nobody would have started it."
        return advance(run, RunState.SKIPPED, now, kind="finished", reason="operator", message=message)
    if ending is not None:
        return advance(run, ending.state, now, kind="finished", reason=ending.reason, message=ending.message)
    message = "Its workflow was ended from outside, so nobody can say whether its work happened."
    return advance(run, RunState.UNKNOWN, now, kind="finished", reason="instance_lost", message=message)


def request(
    workspace: str,
    pipeline: str,
    asked: ManualRun,
    *,
    payload: dict[str, JsonValue],
    target: str,
    key: str,
    by: str,
    heartbeat_seconds: int,
    now: datetime,
) -> LaneRequest:
    """The run as it is recorded, and the lane's request for it. The same `key` is the same run. `payload` is that of
    what was asked, with its secrets sealed."""
    run = Run(
        run_id=ids.manual_run_id(workspace, pipeline, key),
        workspace=workspace,
        schedule_id=None,
        schedule_name=None,
        schedule_revision=None,
        origin=Origin.MANUAL,
        scheduled_for=None,
        reference_time=now,
        reference_zone=asked.timezone,
        executor=EXECUTOR,
        target=target,
        state=RunState.QUEUED,
        recorded_at=now,
        changed_at=now,
        start_by=now + timedelta(minutes=DEFAULTS["max_start_delay_minutes"].default),
    )
    launch = Launch(
        payload=payload,
        lateness_seconds=DEFAULTS["lateness_seconds"].default,
        execution_timeout_seconds=asked.execution_timeout_seconds,
        heartbeat_seconds=heartbeat_seconds,
    )
    priority = DEFAULTS["priority"].default
    entry = LaneEntry(run=hand_over(run), launch=launch, policy=CollisionPolicy.SKIP, priority=priority)
    return LaneRequest(entry=entry, recorded=record(run, by=by))
