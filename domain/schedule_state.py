"""What a schedule's workflow holds, and how each thing that happens to it changes that.

Every function takes the state and answers the state that follows. What the world has to be told is part of
it: `outbox` and `bundles` are changes for the read model, `mail` is what its lane has to hear. All are emptied only
once delivered, so neither an outage nor a restart loses one.
"""

from __future__ import annotations

from datetime import datetime

from domain import outbox, schedule_parent
from domain.dependency import Question
from domain.events import Event, RunChanged, ScheduleChanged
from domain.lane import Lane, LaneEntry
from domain.occurrences import Occurrence
from domain.outbox import Bundle
from domain.run import Advanced, Missed, Origin, Run, RunState
from domain.schedule import (
    SHOWN_AHEAD,
    Acknowledgement,
    Admission,
    Block,
    Condition,
    OccurrencePlan,
    PlannedOccurrence,
    RunSummary,
    ScheduleDefinition,
    ScheduleView,
    lane_of,
)
from domain.schedule_mail import Letter, Mail
from domain.schedule_parent import Parenthood
from domain.values import Value

REMEMBERED_REQUESTS = 200


class OpenRun(Value):
    """A run that has not ended, and the lane it was sent to."""

    lane: str
    entry: LaneEntry
    """What the lane was sent, with the run as it has become since."""
    offer_again_at: datetime
    handed: int = 0
    """The number from which on the lane that was last asked counts the run's rows."""

    @property
    def run(self) -> Run:
        return self.entry.run

    def became(self, run: Run) -> OpenRun:
        return self.model_copy(update={"entry": self.entry.model_copy(update={"run": run})})


class Revision(Value):
    """A definition that was in force until `until`. Kept only while occurrences due under it are unhandled."""

    until: datetime
    number: int
    definition: ScheduleDefinition
    target: str


class WaitingRun(Value):
    """An occurrence that waits for its parents."""

    run: Run
    revision: Revision
    question: Question
    ask_again_at: datetime
    ready_at: datetime | None = None
    """When the delay after its last parent's end is over."""


class ScheduleState(Value):
    workspace: str
    schedule_id: str
    definition: ScheduleDefinition
    target: str
    revision: int = 1
    seq: int = 0
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str
    paused: bool = False
    blocked: Block | None = None
    deleted: bool = False
    workspace_active: bool = True
    acknowledgement: Acknowledgement | None = None
    cursor: datetime
    """Every occurrence up to here has been dealt with."""
    last_nominal: datetime | None = None
    """The latest local time dealt with under the present timing."""
    plan: OccurrencePlan | None = None
    """Absent when it has to be made anew."""
    earlier: tuple[Revision, ...] = ()
    open_runs: tuple[OpenRun, ...] = ()
    waiting: tuple[WaitingRun, ...] = ()
    """What waits for parents: at most one."""
    driven_runs: tuple[str, ...] = ()
    """The latest runs that parents' occurrences made."""
    parenthood: Parenthood = Parenthood()
    gate: Lane | None = None
    """While a run of an earlier revision still goes on in another lane: what waits for its end."""
    blocked_lane: str | None = None
    """The lane of the run that blocked the schedule."""
    last_run: RunSummary | None = None
    last_missed: Missed | None = None
    requests: tuple[Run, ...] = ()
    """The latest Run now requests as they were recorded, so that a repeated one answers the same run."""
    heartbeat_seconds: int = 30
    outbox: tuple[Event, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    """Events that have waited in the outbox for long, oldest first."""
    mail: tuple[Mail, ...] = ()
    letters: tuple[Letter, ...] = ()

    @property
    def condition(self) -> Condition:
        if self.deleted:
            return Condition.DELETED
        if self.blocked is not None:
            return Condition.BLOCKED
        return Condition.PAUSED if self.paused else Condition.ACTIVE

    @property
    def fires(self) -> bool:
        """Whether it acts on what falls due. What passes while its workspace is inactive, or while too much waits for
        the database already, is dealt with afterwards as an outage's backlog."""
        return self.condition is Condition.ACTIVE and self.workspace_active and not self.is_congested

    @property
    def is_congested(self) -> bool:
        return outbox.is_full(self.bundles)

    @property
    def untold(self) -> int:
        """How many changes the read model has yet to hear of."""
        return len(self.outbox) + sum(bundle.count for bundle in self.bundles)

    @property
    def is_over(self) -> bool:
        """Deleted, and nothing left to wait for or to tell."""
        return self.deleted and not (self.open_runs or self.untold or self.mail or self.letters)

    @property
    def needs_plan(self) -> bool:
        return self.fires and self.plan is None and not self.definition.is_driven

    @property
    def lane(self) -> str:
        return lane_of(self.definition, self.target, self.schedule_id)

    @property
    def next_planned(self) -> PlannedOccurrence | None:
        if not self.fires or self.plan is None:
            return None
        return next((planned for planned in self.plan.planned if planned.at > self.cursor), None)

    @property
    def ahead(self) -> tuple[Occurrence, ...]:
        """The next few occurrences, for people to see."""
        if not self.fires or self.plan is None:
            return ()
        planned = (planned.occurrence for planned in self.plan.planned if planned.at > self.cursor)
        return (*planned, *self.plan.beyond)[:SHOWN_AHEAD]

    def but(self, **changes: object) -> ScheduleState:
        return self.model_copy(update=changes)


def begin(
    workspace: str, schedule_id: str, definition: ScheduleDefinition, target: str, by: str, now: datetime
) -> ScheduleState:
    return ScheduleState(
        workspace=workspace,
        schedule_id=schedule_id,
        definition=definition,
        target=target,
        created_at=now,
        created_by=by,
        changed_at=now,
        changed_by=by,
        acknowledgement=acknowledged(definition, None, by, now),
        cursor=now,
    )


def acknowledged(
    definition: ScheduleDefinition, before: Acknowledgement | None, by: str, now: datetime
) -> Acknowledgement | None:
    """The acknowledgement that goes with a definition: the earlier one while its wording is the same."""
    version = definition.acknowledged_risk
    if definition.admission is Admission.SEQUENTIAL or version is None:
        return None
    if before is not None and before.text_version == version:
        return before
    return Acknowledgement(text_version=version, by=by, at=now)


def view(state: ScheduleState) -> ScheduleView:
    planned = state.next_planned
    return ScheduleView(
        schedule_id=state.schedule_id,
        workspace=state.workspace,
        revision=state.revision,
        seq=state.seq,
        definition=state.definition,
        target=state.target,
        condition=state.condition,
        paused=state.paused,
        blocked=state.blocked,
        acknowledgement=state.acknowledgement,
        next_due_at=planned.at if planned else None,
        upcoming=state.ahead,
        tzdata_version=state.plan.tzdata_version if state.plan else None,
        open_runs=tuple(RunSummary.of(run) for run in unfinished(state)),
        last_run=state.last_run,
        last_missed=state.last_missed,
        created_at=state.created_at,
        created_by=state.created_by,
        changed_at=state.changed_at,
        changed_by=state.changed_by,
    )


def unfinished(state: ScheduleState) -> tuple[Run, ...]:
    """Its runs that have not ended, those that wait for parents last."""
    return tuple([open_run.run for open_run in state.open_runs] + [waiting.run for waiting in state.waiting])


def announced(state: ScheduleState) -> ScheduleState:
    """Puts the schedule's present view into the outbox, in place of an older one that is still there, and packs what
    has waited there for long."""
    numbered = state.but(seq=state.seq + 1)
    others = tuple(event for event in numbered.outbox if not isinstance(event, ScheduleChanged))
    bundles, rest = outbox.bundled(others)
    view_now = ScheduleChanged(schedule=view(numbered))
    return numbered.but(outbox=(*rest, view_now), bundles=(*numbered.bundles, *bundles))


def recomputed(state: ScheduleState, now: datetime) -> ScheduleState:
    return state.but(cursor=max(now, state.cursor), last_nominal=None, plan=None, earlier=())


def current(state: ScheduleState, now: datetime) -> Revision:
    return Revision(until=now, number=state.revision, definition=state.definition, target=state.target)


def in_force(state: ScheduleState, at: datetime) -> Revision:
    return next((earlier for earlier in state.earlier if at <= earlier.until), current(state, at))


def new_run(
    state: ScheduleState,
    run_id: str,
    origin: Origin,
    now: datetime,
    *,
    reference_time: datetime,
    scheduled_for: datetime | None = None,
    nominal: tuple[datetime, ...] = (),
    start_by: datetime | None = None,
    revision: Revision | None = None,
) -> Run:
    revision = revision or current(state, now)
    return Run(
        run_id=run_id,
        workspace=state.workspace,
        schedule_id=state.schedule_id,
        schedule_name=revision.definition.name,
        schedule_revision=revision.number,
        origin=origin,
        scheduled_for=scheduled_for,
        nominal=nominal,
        reference_time=reference_time,
        reference_zone=revision.definition.timezone,
        executor=revision.definition.executor,
        target=revision.target,
        state=RunState.QUEUED,
        recorded_at=now,
        changed_at=now,
        start_by=start_by,
    )


def changed(state: ScheduleState, change: Advanced) -> ScheduleState:
    """Something happened to a run: the read model is told, and those that depend on it will be."""
    parenthood = schedule_parent.followed(state.parenthood, change.run)
    return state.but(outbox=(*state.outbox, RunChanged(change=change)), parenthood=parenthood)
