"""The lane's workflow: whose turn it is on one target.

It starts a run as its own child in the task in which it takes the run's entry off the line, so a crash lands
before both or after both; and the end of the child, however it comes, frees the lane. A lane that is held for
long continues as new while held: its runs are started so that they outlive it, and the next of its runs watches
the holder from outside. Once nobody holds it and nobody waits it is done; the next request starts it anew.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import assert_never

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ChildWorkflowError, FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from activities import visibility
    from activities.post import PostActivities, ScheduleLetter
    from activities.watching import BEAT_SECONDS, WatchingActivities, WatchRun
    from domain import ids, lane, messages
    from domain.lane import LaneDecision, LaneEntry
    from domain.messages import LaneDrop, LaneInput, LaneLetter, LaneRelease, LaneRequest, LaneWithdrawal, RunOrder
    from domain.run import Advanced, Run, hand_over
    from workflows import words
    from workflows.alarm import Alarm
    from workflows.outlet import ONCE, QUICK, Outlet
    from workflows.renewal import history_is_long
    from workflows.run import RunWorkflow


@workflow.defn(name=messages.LANE_WORKFLOW)
class LaneWorkflow:
    @workflow.init
    def __init__(self, start: LaneInput) -> None:
        self._start = start
        self._lane = start.lane
        self._inbox: list[LaneLetter] = []
        self._holder_ended: asyncio.Task[Run | None] | None = None
        self._reports: list[Advanced] = list(start.reports)
        self._post = Outlet(self._tell_schedules)
        self._alarm = Alarm()

    @workflow.run
    async def run(self, start: LaneInput) -> None:
        self._mind_holder()
        while True:
            await self._settle()
            if self._idle():
                return
            if history_is_long(self._start.history_limit):
                workflow.continue_as_new(start.model_copy(update={"lane": self._lane, "reports": tuple(self._reports)}))
            self._set_alarm()
            await workflow.wait_condition(lambda: self._has_news() or self._alarm.rang)

    @workflow.signal(name=messages.LANE_REQUEST_SIGNAL)
    def request(self, request: LaneRequest) -> None:
        self._inbox.append(request)

    @workflow.signal(name=messages.LANE_WITHDRAW_SIGNAL)
    def withdraw(self, withdrawal: LaneWithdrawal) -> None:
        self._inbox.append(withdrawal)

    @workflow.signal(name=messages.LANE_DROP_SIGNAL)
    def drop(self, drop: LaneDrop) -> None:
        self._inbox.append(drop)

    @workflow.signal(name=messages.LANE_RELEASE_SIGNAL)
    def release(self, release: LaneRelease) -> None:
        self._inbox.append(release)

    @workflow.query(name="lane")
    def current(self) -> lane.Lane:
        return self._lane

    # Settling ----------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """The end of the holder comes first, then what time has done, then the letters in the order they came: a
        run that is due in the moment in which the other ends finds the lane free."""
        while True:
            if self._holder_ended is not None and self._holder_ended.done():
                await self._release(self._holder_ended.result())
            await self._apply(lane.tick(self._lane, workflow.now()))
            while self._inbox:
                await self._open(self._inbox.pop(0))
            workflow.set_current_details(words.lane_details(self._start.lane_key, self._lane))
            await self._post.deliver()
            if not self._has_news():
                return

    async def _open(self, letter: LaneLetter) -> None:
        now = workflow.now()
        match letter:
            case LaneRequest(entry=entry, begun=True):
                await self._apply(lane.resumed(self._lane, entry))
                self._mind_holder()
            case LaneRequest(entry=entry, recorded=recorded):
                self._reports += [recorded] if recorded else []
                await self._apply(lane.arrive(self._lane, entry, now))
            case LaneRelease(run_id=run_id):
                self._let_go(run_id)
                await self._apply(lane.released(self._lane, run_id, now))
            case LaneDrop(run_id=run_id, by=by):
                await self._apply(lane.dropped(self._lane, run_id, now, by))
            case LaneWithdrawal(schedule_id=schedule_id, reason=reason, message=message):
                only = letter.only_occurrences
                await self._apply(lane.withdrawn(self._lane, schedule_id, now, reason, message, only_occurrences=only))
            case _:
                assert_never(letter)

    def _let_go(self, run_id: str) -> None:
        """What was waited for is waited for no longer: a person has said that this run does not hold the lane."""
        holder = self._lane.holder
        if holder is not None and holder.run.run_id == run_id and self._holder_ended is not None:
            self._holder_ended.cancel()
            self._holder_ended = None

    async def _release(self, ended: Run | None) -> None:
        """A holder that can't be asked how it ended was ended from outside."""
        holder = self._lane.holder
        assert holder is not None
        self._holder_ended = None
        now = workflow.now()
        decision = lane.released(self._lane, holder.run.run_id, now) if ended else lane.lost(self._lane, now)
        await self._apply(decision)

    async def _apply(self, decision: LaneDecision) -> None:
        self._lane = decision.lane
        self._reports.extend(decision.changes)
        if decision.started is not None:
            await self._begin(decision.started)

    async def _begin(self, entry: LaneEntry) -> None:
        run = hand_over(entry.run)
        try:
            child = await workflow.start_child_workflow(
                RunWorkflow.run,
                RunOrder(run=run, launch=entry.launch, lane=self._start.lane_key),
                id=ids.run_workflow_id(run.workspace, run.run_id),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                parent_close_policy=ParentClosePolicy.ABANDON,
                search_attributes=visibility.run(run),
                static_summary=f"{run.schedule_name or 'manual'} · {run.target}",
            )
        except WorkflowAlreadyStartedError:
            self._holder_ended = asyncio.create_task(self._watch(run))
        else:
            self._holder_ended = asyncio.create_task(_result(child))

    def _mind_holder(self) -> None:
        """A holder whose end nobody waits for yet is watched from outside."""
        holder = self._lane.holder
        if holder is not None and self._lane.in_doubt_until is None and self._holder_ended is None:
            self._holder_ended = asyncio.create_task(self._watch(holder.run))

    async def _watch(self, run: Run) -> Run | None:
        """A holder that is not this run's child, or no longer: its end is waited for from outside."""
        end = await workflow.execute_activity_method(
            WatchingActivities.await_run_end,
            WatchRun(workspace=run.workspace, run_id=run.run_id),
            start_to_close_timeout=timedelta(days=8),
            heartbeat_timeout=timedelta(seconds=6 * BEAT_SECONDS),
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30)),
            summary=f"until {run.run_id} has ended",
        )
        return end.run

    async def _tell_schedules(self) -> None:
        """Each schedule gets what happened to its runs, in order. One that can't be told now keeps no other waiting.
        What happened to manual runs, which have no schedule, goes straight to the read model."""
        failure: FailureError | None = None
        tried: set[str | None] = set()
        while ahead := [change for change in self._reports if change.run.schedule_id not in tried]:
            schedule_id = ahead[0].run.schedule_id
            tried.add(schedule_id)
            try:
                await self._tell(schedule_id)
            except FailureError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _tell(self, schedule_id: str | None) -> None:
        batch = tuple(change for change in self._reports if change.run.schedule_id == schedule_id)
        await workflow.execute_local_activity_method(
            PostActivities.tell_schedule,
            ScheduleLetter(workspace=self._start.workspace, schedule_id=schedule_id, changes=batch),
            start_to_close_timeout=QUICK,
            retry_policy=ONCE,
        )
        self._reports = [change for change in self._reports if change not in batch]

    # Parts -------------------------------------------------------------------------------------------

    def _has_news(self) -> bool:
        return bool(self._inbox) or (self._holder_ended is not None and self._holder_ended.done())

    def _idle(self) -> bool:
        return self._lane.is_idle and not self._reports and not self._inbox

    def _set_alarm(self) -> None:
        times = [at for at in (lane.next_wake(self._lane), self._post.retry_at) if at is not None]
        self._alarm.set(min(times, default=None), "until a waiting run is retried or expires")


async def _result(child: ChildWorkflowHandle[RunWorkflow, Run]) -> Run | None:
    """Shielded: to stop waiting for a run must not cancel it."""
    try:
        return await asyncio.shield(child)
    except ChildWorkflowError:
        return None
