"""What is said to the workflows and what they answer. Names on the wire are given here and never change;
a new meaning gets a new name, because histories already written are replayed against this page.
"""

from __future__ import annotations

from typing import Literal

from domain.events import Event
from domain.lane import Lane, LaneEntry, Launch
from domain.run import Advanced, Origin, Run
from domain.schedule import Moved, ScheduleDefinition, ScheduleView
from domain.schedule_state import ScheduleState
from domain.values import Value

TASK_QUEUE = "almanac"
"""Workflows and the short activities."""

EXECUTIONS_QUEUE = "almanac-executions"
"""Executions: a worker takes as many as it has slots."""

HISTORY_LIMIT = 2000
"""Events after which a schedule or a lane continues as new: an entity that is woken often is replayed often."""

SCHEDULE_WORKFLOW = "almanac.schedule"
LANE_WORKFLOW = "almanac.lane"
RUN_WORKFLOW = "almanac.run"

CREATE_UPDATE = "create"
REVISE_UPDATE = "revise"
PAUSE_UPDATE = "pause"
RESUME_UPDATE = "resume"
UNBLOCK_UPDATE = "unblock"
DELETE_UPDATE = "delete"
RUN_NOW_UPDATE = "run_now"
REPLAN_UPDATE = "replan"
DROP_UPDATE = "drop"
RUN_NOW_SIGNAL = "run_now_signal"
WORKSPACE_SIGNAL = "workspace"
RUN_REPORT_SIGNAL = "run_report"

QUESTION_SIGNAL = "await_occurrence"
ANSWER_SIGNAL = "parent_occurrence"
SUBSCRIBE_SIGNAL = "subscribe"
PARENT_DUE_SIGNAL = "parent_due"

LANE_REQUEST_SIGNAL = "request"
LANE_WITHDRAW_SIGNAL = "withdraw"
LANE_DROP_SIGNAL = "drop"
LANE_RELEASE_SIGNAL = "release"

EXECUTION_STARTED_SIGNAL = "execution_started"
CANCEL_RUN_SIGNAL = "cancel"


class CreateSchedule(Value):
    """Update `create`, sent with the start of the schedule's workflow. Repeating it with the same definition
    answers the schedule as it is."""

    definition: ScheduleDefinition
    target: str
    by: str
    workspace_active: bool = True


class ReviseSchedule(Value):
    """Update `revise`: replaces the definition. Refused with `schedule.revision_conflict` unless
    `expected_revision` is the current one."""

    definition: ScheduleDefinition
    target: str
    expected_revision: int
    by: str


class Act(Value):
    """Updates `pause`, `resume`, `unblock`, `delete` and `replan`: the act is the update's name."""

    by: str


class SetWorkspaceActive(Value):
    """Signal `workspace`: the schedule's workspace was deactivated or activated. A signal, so that a schedule hears it
    though no worker runs at the moment."""

    active: bool


class DropRun(Value):
    """Update `drop`: a person cancels a run of the schedule that waits. Refused with `run.not_waiting` when it does
    not wait, or no longer."""

    run_id: str
    by: str


class RunNow(Value):
    """Update `run_now` and signal `run_now_signal`. The same key is the same run."""

    key: str
    by: str
    origin: Literal[Origin.RUN_NOW, Origin.HOOK] = Origin.RUN_NOW


class ScheduleAnswer(Value):
    """What every update of a schedule answers: the schedule as it now is and the changes that the read model
    may not have seen yet."""

    schedule: ScheduleView
    events: tuple[Event, ...]


class ReplanAnswer(ScheduleAnswer):
    """What `replan` answers: beside the schedule, which of the next local times are now due at another instant."""

    moved: tuple[Moved, ...]


class RunNowAnswer(Value):
    run: Run
    events: tuple[Event, ...]


class RunReport(Value):
    """Signal `run_report` to a schedule: what happened to its runs since it last heard of them."""

    changes: tuple[Advanced, ...]


class LaneRequest(Value):
    """Signal `request` to a lane, sent with its start."""

    entry: LaneEntry
    begun: bool = False
    """Whether the run's own workflow exists: an earlier request had been granted."""
    recorded: Advanced | None = None
    """The first row of a run that no schedule has, and that therefore the lane tells."""


class LaneWithdrawal(Value):
    """Signal `withdraw` to a lane: what the schedule has waiting there ends with this reason."""

    schedule_id: str
    reason: str
    message: str
    only_occurrences: bool = False


class LaneDrop(Value):
    """Signal `drop` to a lane: a person cancels one run that waits."""

    run_id: str
    by: str


class LaneRelease(Value):
    """Signal `release` to a lane: this run does not hold it any more, for its work is known to be over or a person
    says so."""

    run_id: str


LaneLetter = LaneRequest | LaneWithdrawal | LaneDrop | LaneRelease


class RunOrder(Value):
    """The start of a run's workflow."""

    run: Run
    launch: Launch
    lane: str
    """The lane that it holds."""


class ExecutionStarted(Value):
    """Signal `execution_started` to a run: its RUNNING record is committed."""

    run: Run


class CancelRun(Value):
    """Signal `cancel` to a run: a person wants it to end."""

    by: str


class ScheduleInput(Value):
    """The start of a schedule's workflow; after a continue-as-new with what it carries over. Without a state it
    waits for its `create` update."""

    workspace: str
    schedule_id: str
    state: ScheduleState | None = None
    history_limit: int = HISTORY_LIMIT


class LaneInput(Value):
    """The start of a lane's workflow; after a continue-as-new with what it carries over."""

    workspace: str
    lane_key: str
    """The target, or what a parallel schedule has instead."""
    lane: Lane = Lane()
    reports: tuple[Advanced, ...] = ()
    """What its schedules have yet to be told."""
    history_limit: int = HISTORY_LIMIT
