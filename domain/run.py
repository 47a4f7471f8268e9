"""A run: one attempt to act on an occurrence, a Run now, a webhook or a manual start.

A run is a row that exists before anything is launched and ends in exactly one final state. Its owner (the
schedule, then the lane, then its own workflow) holds it as a value and changes it only through the one door
below, `advance` and `note`, which check the transition against the table and append to the trail.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import JsonValue

from domain.values import Value


class RunState(StrEnum):
    WAITING = "waiting"
    """Recorded, and held back by a dependency, the lane or a delay."""
    QUEUED = "queued"
    """Recorded, free to be admitted."""
    STARTING = "starting"
    """Claimed: the one conditional write is won, the launch is in progress."""
    RUNNING = "running"
    """The execution's record is committed and its work may be going on."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABORTED = "aborted"
    """An instance shut down under it."""
    UNKNOWN = "unknown"
    """Nobody can say whether its work happened."""
    NOT_STARTED = "not_started"
    """Nothing ran."""
    SKIPPED = "skipped"
    """By policy, never attempted."""


S = RunState

ENTRY_STATES = frozenset({S.QUEUED, S.WAITING, S.SKIPPED})
"""The states in which a run may be recorded."""

TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    S.WAITING: frozenset({S.WAITING, S.QUEUED, S.CANCELLED, S.SKIPPED}),
    S.QUEUED: frozenset({S.WAITING, S.STARTING, S.CANCELLED, S.NOT_STARTED, S.SKIPPED, S.UNKNOWN}),
    S.STARTING: frozenset({S.RUNNING, S.CANCELLED, S.ABORTED, S.NOT_STARTED, S.UNKNOWN}),
    S.RUNNING: frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED, S.ABORTED, S.UNKNOWN}),
    S.SUCCEEDED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
    S.ABORTED: frozenset(),
    S.UNKNOWN: frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED, S.ABORTED}),
    S.NOT_STARTED: frozenset(),
    S.SKIPPED: frozenset(),
}
"""Where each state may go. `unknown` is final, yet a late truth may still replace it."""

OPEN_STATES = frozenset({S.WAITING, S.QUEUED, S.STARTING, S.RUNNING})
FINAL_STATES = frozenset(RunState) - OPEN_STATES

REASONS: dict[RunState, tuple[str, ...]] = {
    S.WAITING: ("dependency", "lane", "delay"),
    S.FAILED: ("execution_failed", "execution_timeout"),
    S.CANCELLED: ("cancelled",),
    S.ABORTED: ("shutdown",),
    S.UNKNOWN: ("instance_lost", "start_unconfirmed", "start_failed", "execution_missing", "outcome_unreadable"),
    S.NOT_STARTED: (
        "capacity",
        "executor_unavailable",
        "pointer_null",
        "target_not_found",
        "payload_invalid",
        "parameters_invalid",
        "version_changed",
        "workspace_inactive",
        "authority_refused",
        "start_refused",
        "snapshot_unresolved",
        "record_unwritable",
        "folder_unwritable",
    ),
    S.SKIPPED: (
        "missed",
        "overlap",
        "busy",
        "superseded",
        "coalesced",
        "expired",
        "dependency_deadline",
        "parent_failed",
        "parent_absent",
        "schedule_paused",
        "schedule_blocked",
        "schedule_edited",
        "schedule_deleted",
        "operator",
    ),
}
"""The reasons in use. Reasons are open strings, so this is what the docs list, not what is enforced."""

BLOCKING_REFUSALS = frozenset(
    {
        "executor_unavailable",
        "pointer_null",
        "target_not_found",
        "payload_invalid",
        "parameters_invalid",
        "authority_refused",
        "start_refused",
    }
)
"""The `not_started` reasons that a person has to mend, so the schedule fires nothing until then."""


class Origin(StrEnum):
    CRON = "cron"
    CATCH_UP = "catch_up"
    RUN_NOW = "run_now"
    HOOK = "hook"
    MANUAL = "manual"


class Missed(Value):
    """An unbroken stretch of occurrences that nobody acted on, bounds inclusive."""

    first: datetime
    last: datetime
    count: int


class Folded(Value):
    """The occurrences a coalesced run stands for, itself included."""

    first: datetime
    newest: datetime
    count: int


class WaitStatus(StrEnum):
    ASKED = "asked"
    """The parent has not answered yet."""
    NOT_DUE = "not_due"
    """Its matching occurrence is still to come."""
    OPEN = "open"
    """Its matching occurrence fell due, and how that ended is not known yet."""
    ENDED = "ended"
    ABSENT = "absent"
    """It has no occurrence on the date."""


class ParentWait(Value):
    """One parent of a waiting run, and what is known of the occurrence that is waited for."""

    schedule_id: str
    name: str | None = None
    status: WaitStatus = WaitStatus.ASKED
    occurrence: datetime | None = None
    nominal: tuple[datetime, ...] = ()
    """The local wall times that occurrence stands for, once it fell due."""
    run_id: str | None = None
    """The run that stands for it."""
    run_state: RunState | None = None
    reason: str | None = None
    ended_at: datetime | None = None
    since: datetime
    """When it came to be so."""
    told_at: datetime | None = None
    """When the parent said so, by the parent's clock."""


class Run(Value):
    run_id: str
    workspace: str
    schedule_id: str | None
    """Absent, as its name and revision are, for a manual run, which belongs to no schedule."""
    schedule_name: str | None
    schedule_revision: int | None
    origin: Origin
    scheduled_for: datetime | None
    """The occurrence's instant; absent for a Run now and for a summary of missed occurrences."""
    nominal: tuple[datetime, ...] = ()
    """The local wall times the occurrence stands for, without zone."""
    reference_time: datetime
    """Frozen when recorded: the occurrence's instant, or the request's time for a Run now."""
    reference_zone: str
    executor: str
    target: str
    state: RunState
    reason: str | None = None
    message: str | None = None
    """What happened, in a sentence for people."""
    seq: int = 1
    """The number of its last trail row."""
    recorded_at: datetime
    changed_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    missed: Missed | None = None
    folded: Folded | None = None
    waits_for: tuple[ParentWait, ...] = ()
    """The parents' occurrences it waits for, or has waited for."""
    stands_in: str | None = None
    """The run that stands for this one: the newer that superseded it, or the first that it folded into."""
    execution_id: str | None = None
    run_folder: str | None = None
    prepared: dict[str, JsonValue] | None = None
    """What was frozen at admission, e.g. `{pipeline_id, version, body_sha256}`."""
    start_by: datetime | None = None
    """When it stops being worth starting."""
    files_expired_at: datetime | None = None
    """When the files in its folder were deleted, because newer runs took their place."""

    @property
    def is_occurrence(self) -> bool:
        """Whether it stands for an occurrence, and was not asked for by somebody."""
        return self.origin in (Origin.CRON, Origin.CATCH_UP)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def blocks(self) -> bool:
        """Whether this end must stop its schedule until a person looks."""
        return self.state is S.UNKNOWN or (self.state is S.NOT_STARTED and self.reason in BLOCKING_REFUSALS)


class TrailRow(Value):
    """One thing that happened to a run; rows are ordered by `seq`, which may have gaps."""

    run_id: str
    seq: int
    at: datetime
    kind: str
    state: RunState
    reason: str | None = None
    message: str | None = None
    data: dict[str, JsonValue] = {}


class Advanced(Value):
    """The result of every change to a run: its new value and the trail row that says so."""

    run: Run
    trail: TrailRow


class IllegalTransition(Exception):
    """A change the table does not know: a defect of the caller, never of a user's input."""


OWNER_BLOCK = 10_000
SEIZURE_BLOCK = 1_000_000_000


def record(run: Run, **data: JsonValue) -> Advanced:
    """The first row of a new run's trail."""
    if run.state not in ENTRY_STATES:
        raise IllegalTransition(f"a run can't be recorded as {run.state}")
    return _with_row(run, "recorded", data)


def advance(
    run: Run,
    to: RunState,
    at: datetime,
    *,
    kind: str | None = None,
    reason: str | None = None,
    message: str | None = None,
    data: dict[str, JsonValue] | None = None,
    **changes: Any,
) -> Advanced:
    """Moves `run` to state `to`, or raises IllegalTransition. `changes` are other fields of the run to set."""
    if to not in TRANSITIONS[run.state]:
        raise IllegalTransition(f"run {run.run_id}: {run.state} can't become {to}")
    late_truth = run.state is S.UNKNOWN
    moved = run.model_copy(
        update={"state": to, "reason": reason, "message": message, "seq": run.seq + 1, "changed_at": at, **changes}
        | ({"started_at": at} if to is S.RUNNING else {})
        | ({"ended_at": at} if to in FINAL_STATES else {})
    )
    return _with_row(moved, "updated_after_unknown" if late_truth else kind or to.value, data or {})


def note(
    run: Run,
    kind: str,
    at: datetime,
    message: str | None = None,
    *,
    data: dict[str, JsonValue] | None = None,
    **changes: Any,
) -> Advanced:
    """Something happened to a run that did not change its state, such as a retry for capacity."""
    noted = run.model_copy(update={"seq": run.seq + 1, "changed_at": at, **changes})
    row = TrailRow(
        run_id=run.run_id,
        seq=noted.seq,
        at=at,
        kind=kind,
        state=run.state,
        reason=run.reason,
        message=message,
        data=data or {},
    )
    return Advanced(run=noted, trail=row)


def reworded(change: Advanced, message: str) -> Advanced:
    """The same change, told in other words."""
    return Advanced(
        run=change.run.model_copy(update={"message": message}),
        trail=change.trail.model_copy(update={"message": message}),
    )


def hand_over(run: Run) -> Run:
    """Numbers from here on belong to a new owner, so no two owners can ever write the same trail row. Whoever
    hands over keeps this value: should the new owner vanish, the next hand-over starts beyond its numbers."""
    return run.model_copy(update={"seq": (run.seq // OWNER_BLOCK + 1) * OWNER_BLOCK})


def seize(run: Run) -> Run:
    """The same when the owner vanished together with all that it handed on."""
    return run.model_copy(update={"seq": (run.seq // SEIZURE_BLOCK + 1) * SEIZURE_BLOCK})


def _with_row(run: Run, kind: str, data: dict[str, JsonValue]) -> Advanced:
    row = TrailRow(
        run_id=run.run_id,
        seq=run.seq,
        at=run.changed_at,
        kind=kind,
        state=run.state,
        reason=run.reason,
        message=run.message,
        data=data,
    )
    return Advanced(run=run, trail=row)
