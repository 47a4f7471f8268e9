"""A schedule: when, and under which policies, an executor's payload runs."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints

from domain.dependency import TerminalStatus
from domain.occurrences import Occurrence
from domain.run import Missed, Origin, Run, RunState
from domain.values import Value


class MissedPolicy(StrEnum):
    SKIP = "skip"
    """The latest missed occurrence runs only while it is within the lateness window."""
    LATEST = "latest"
    """The latest missed occurrence runs once, up to the catch-up age."""


class CollisionPolicy(StrEnum):
    SKIP = "skip"
    QUEUE_LATEST = "queue_latest"
    """Waits; a newer occurrence replaces it."""
    RETRY = "retry"
    """The first occurrence is tried again until its deadline; newer ones give way."""
    COALESCE = "coalesce"
    """The first occurrence waits and stands for the newer ones too."""


class Admission(StrEnum):
    SEQUENTIAL = "sequential"
    """Takes its turn on the lane of its target."""
    PARALLEL = "parallel"
    """Runs beside whatever else runs on its target; its author has acknowledged the risk."""


class Condition(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    BLOCKED = "blocked"
    """Fires nothing until a person unblocks it."""
    DELETED = "deleted"


Deadline = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9](\+1)?$")]
ScheduleId = Annotated[str, StringConstraints(max_length=64)]
LocalTime = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class ScheduleDefinition(Value):
    """What an author writes. `payload` belongs to the executor: the scheduler passes it through unread."""

    name: str
    cron: str | None = None
    """Absent where the parents' occurrences drive the schedule."""
    timezone: str
    executor: str = "pipeline"
    payload: dict[str, JsonValue]
    missed_policy: MissedPolicy = MissedPolicy.SKIP
    lateness_seconds: int = Field(default=600, ge=0, le=86_400)
    catch_up_max_age_seconds: int = Field(default=86_400, ge=0, le=31 * 86_400)
    collision_policy: CollisionPolicy = CollisionPolicy.SKIP
    admission: Admission = Admission.SEQUENTIAL
    acknowledged_risk: int | None = None
    """For parallel admission: the version of the risk text that its author has read and accepts."""
    priority: int = Field(default=5, ge=1, le=9)
    """1 goes first."""
    max_start_delay_minutes: int = Field(default=1440, ge=1, le=7 * 1440)
    start_deadline: LocalTime | None = None
    """Local wall time after which a pending occurrence is not worth starting."""
    execution_timeout_seconds: int = Field(default=3600, ge=1, le=7 * 86_400)
    after_schedule_ids: Annotated[tuple[ScheduleId, ...], Field(max_length=1000)] | None = None
    """The schedules whose matching occurrences have to end before an occurrence of this one may start."""
    after_schedule_id: ScheduleId | None = None
    """A single parent, as older manifests have it."""
    after_terminal_status: TerminalStatus = TerminalStatus.COMPLETED
    after_delay_minutes: int = Field(default=0, ge=0, le=7 * 1440)
    """Counts from the last parent's end."""
    dependency_deadline: Deadline | None = None
    """Local wall time at which a waiting occurrence gives up; `+1` means on the next day. Without one, the end of
    its local date does."""
    notes: str = Field(default="", max_length=10_000)

    @property
    def parents(self) -> tuple[str, ...]:
        """Each parent once, in the order written."""
        single = (self.after_schedule_id,) if self.after_schedule_id else ()
        return tuple(dict.fromkeys((*(self.after_schedule_ids or ()), *single)))

    @property
    def is_driven(self) -> bool:
        return self.cron is None


TOUCHES_NOTHING = frozenset({"name", "notes"})
"""Fields whose edit leaves the plan and any pending occurrence as they are."""

TIMING = frozenset({"cron", "timezone"})
"""Fields whose edit makes the schedule recompute from now."""


def lane_of(definition: ScheduleDefinition, target: str, schedule_id: str) -> str:
    """Where the schedule's runs take their turn: on the lane of their target, or on one of their own, which keeps
    them from overlapping each other and nobody else."""
    return target if definition.admission is Admission.SEQUENTIAL else f"{target}#{schedule_id}"


def changed_fields(old: ScheduleDefinition, new: ScheduleDefinition) -> frozenset[str]:
    return frozenset(name for name in type(old).model_fields if getattr(old, name) != getattr(new, name))


class PlannedOccurrence(Value):
    occurrence: Occurrence
    start_by: datetime
    """Pending beyond this instant, it is not worth starting: the start delay or the start deadline, whichever
    is earlier."""
    wait_until: datetime | None = None
    """When waiting for parents ends: the dependency deadline or the end of the local date."""

    @property
    def at(self) -> datetime:
        return self.occurrence.at


SHOWN_AHEAD = 5
"""So many occurrences people see ahead, however few of them are planned."""


class OccurrencePlan(Value):
    """The next few occurrences as computed once and recorded, so that a replay under other zone data decides
    the same. Never empty, but for a pattern that has no further occurrence before the year 2200."""

    planned: tuple[PlannedOccurrence, ...]
    beyond: tuple[Occurrence, ...] = ()
    """What comes after them, for people to see. Nothing is decided by it: it may be computed anew before it is due."""
    tzdata_version: str
    made_at: datetime


class Moved(Value):
    """A local time that new zone data puts at another instant."""

    nominal: datetime
    before: datetime
    after: datetime | None
    """None where the new data has it in the past: it is not due any more, and not missed either."""


class Backlog(Value):
    """What fell due in a stretch of time, counted and not listed."""

    count: int
    first: datetime
    previous: datetime | None
    """The last but one."""
    latest: PlannedOccurrence


DEFINITION_INVALID = "definition_invalid"
"""The block of a schedule whose own definition is no longer accepted: there is no run to look at."""


class Block(Value):
    """Why a schedule fires nothing: the first cause, kept until a person unblocks."""

    reason: str
    """The reason of the run that blocked it, or `definition_invalid`."""
    run_id: str | None
    since: datetime
    message: str | None = None
    """What is wrong and where, for people."""

    @property
    def cause(self) -> str:
        return self.reason if self.run_id is None else f"{self.reason}, run {self.run_id}"


class Acknowledgement(Value):
    """Who accepted the risk of parallel admission, and when, and in which wording."""

    text_version: int
    by: str
    at: datetime


class RunSummary(Value):
    run_id: str
    origin: Origin
    state: RunState
    reason: str | None
    scheduled_for: datetime | None
    at: datetime

    @classmethod
    def of(cls, run: Run) -> RunSummary:
        return cls(
            run_id=run.run_id,
            origin=run.origin,
            state=run.state,
            reason=run.reason,
            scheduled_for=run.scheduled_for,
            at=run.changed_at,
        )


class ScheduleView(Value):
    """A schedule as readers see it; `seq` grows with every change, so that a late copy never replaces a newer."""

    schedule_id: str
    workspace: str
    revision: int
    seq: int
    definition: ScheduleDefinition
    target: str
    condition: Condition
    paused: bool
    blocked: Block | None
    acknowledgement: Acknowledgement | None
    next_due_at: datetime | None
    upcoming: tuple[Occurrence, ...]
    tzdata_version: str | None
    open_runs: tuple[RunSummary, ...]
    """Its runs that have not ended: at most one active and those that wait."""
    last_run: RunSummary | None
    last_missed: Missed | None
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


def json_body(value: Value) -> dict[str, Any]:
    return value.model_dump(mode="json")
