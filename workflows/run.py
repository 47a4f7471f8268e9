"""The run's workflow: has one run executed, and knows how it ended.

Its turn has come and its dependencies are met before it starts. What it returns is the run in its final state. When
its worker goes silent it finds out what can be proven; a run whose end nobody knows is watched for a late truth.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout
from temporalio.workflow import ActivityCancellationType, ActivityHandle

with workflow.unsafe.imports_passed_through():
    from activities import visibility
    from activities.executions import Executed, ExecuteRun, ExecutionActivities
    from activities.inquiry import Inquiry, InquiryActivities, WatchExecution
    from activities.post import LaneLetter, PostActivities, ScheduleLetter
    from activities.watching import BEAT_SECONDS
    from domain import lost_run, messages
    from domain.lane import MISSED_HEARTBEATS
    from domain.lost_run import Ending
    from domain.messages import CancelRun, ExecutionStarted, RunOrder
    from domain.run import Advanced, Run, RunState, advance, hand_over, note, reworded
    from domain.schedule_mail import ReleaseLane
    from workflows import words
    from workflows.detached import DetachedExecution
    from workflows.outlet import ONCE, QUICK

CAPACITY_PAUSE = timedelta(seconds=30)
"""How long a run waits for a free slot before it counts as tried."""

LOSS_PAUSE = timedelta(seconds=5)
"""How long a run waits before it is offered again after its worker was lost."""

INQUIRY = timedelta(seconds=30)
"""How long one look at what became of an execution may take."""

CLEAN_UP = timedelta(minutes=2)
"""What an execution gets on top of its timeout to end its processes and say so."""

WATCH = timedelta(hours=24)
"""How long an unknown run may still tell how it ended."""

PATIENT = RetryPolicy(maximum_interval=timedelta(seconds=30))


@workflow.defn(name=messages.RUN_WORKFLOW)
class RunWorkflow:
    @workflow.init
    def __init__(self, order: RunOrder) -> None:
        self._launch = order.launch
        self._lane = order.lane
        self._run = order.run
        self._changes: list[Advanced] = []
        self._announced = False
        self._execution: ActivityHandle[Executed] | None = None
        self._cancelled_by: str | None = None
        self._retries = 0
        self._until = workflow.now()
        self._went_silent = False

    @workflow.run
    async def run(self, order: RunOrder) -> Run:
        workflow.set_current_details(words.run_details(self._run))
        ended = await self._admit()
        await self._become(ended)
        if ended.run.state is RunState.UNKNOWN:
            await self._watch()
        return self._run

    @workflow.signal(name=messages.EXECUTION_STARTED_SIGNAL)
    def execution_started(self, started: ExecutionStarted) -> None:
        if not self._run.is_final:
            self._run = started.run
            self._announced = True
            self._show()

    @workflow.signal(name=messages.CANCEL_RUN_SIGNAL)
    def cancel(self, cancel: CancelRun) -> None:
        if self._run.is_final or self._cancelled_by is not None:
            return
        self._cancelled_by = cancel.by
        if self._execution is not None:
            self._execution.cancel()

    @workflow.query(name="run")
    def current(self) -> Run:
        return self._run

    # Until it has ended -------------------------------------------------------------------------------

    async def _admit(self) -> Advanced:
        """Tries until the run has ended, or the lateness window has closed and nothing ran."""
        self._until = workflow.now() + timedelta(seconds=self._launch.lateness_seconds)
        while self._cancelled_by is None:
            self._run = hand_over(self._run)
            ended = await self._attempt()
            if ended is not None:
                return ended
            if workflow.now() >= self._until:
                message = "No worker took it up while it was worth starting, so nothing ran."
                return await self._without_start(RunState.NOT_STARTED, "capacity", message)
        return await self._without_start(RunState.CANCELLED, "cancelled", "It was cancelled.")

    async def _attempt(self) -> Advanced | None:
        """None when nothing ran."""
        attempt = self._run
        try:
            executed = await self._execute(attempt)
        except ActivityError as error:
            if _found_no_slot(error):
                await self._retry("No worker had a free slot yet.")
                return None
            cause = str(error.cause)
        else:
            if executed.change is not None:
                return executed.change
            if executed.detached is not None:
                return await self._follow(executed.detached)
            cause = "Its start was claimed before, or its worker shut down."
        self._went_silent = True
        ended = await self._look_into(final=False, cause=cause)
        if ended is None and self._cancelled_by is None:
            await self._retry("Its worker was lost before it had claimed the run, so nothing ran yet.")
            if workflow.now() < self._until:
                with suppress(TimeoutError):
                    await workflow.wait_condition(lambda: self._cancelled_by is not None, timeout=LOSS_PAUSE)
        return ended

    async def _execute(self, attempt: Run) -> Executed:
        timeout = timedelta(seconds=self._launch.execution_timeout_seconds)
        self._execution = workflow.start_activity_method(
            ExecutionActivities.execute_run,
            ExecuteRun(run=attempt, launch=self._launch),
            task_queue=messages.EXECUTIONS_QUEUE,
            schedule_to_start_timeout=CAPACITY_PAUSE,
            start_to_close_timeout=timeout + CLEAN_UP,
            heartbeat_timeout=timedelta(seconds=self._launch.heartbeat_seconds * MISSED_HEARTBEATS),
            retry_policy=ONCE,
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=f"{attempt.target} for {attempt.schedule_name or 'a manual run'}",
        )
        try:
            return await self._execution
        finally:
            self._execution = None

    async def _retry(self, message: str) -> None:
        self._retries += 1
        noted = note(hand_over(self._run), "capacity_retried", workflow.now(), message, data={"retries": self._retries})
        self._run = noted.run
        self._changes.append(noted)
        await self._report()

    async def _without_start(self, state: RunState, reason: str, message: str) -> Advanced:
        """Ends a run that was never launched, once it is certain that nobody launches it later."""
        if self._went_silent:
            ended = await self._look_into(final=True, cause=message)
            if ended is not None:
                return ended
        return advance(hand_over(self._run), state, workflow.now(), kind="finished", reason=reason, message=message)

    async def _look_into(self, *, final: bool, cause: str) -> Advanced | None:
        evidence = await workflow.execute_activity_method(
            InquiryActivities.inquire,
            Inquiry(run=self._run, final=final),
            start_to_close_timeout=INQUIRY,
            retry_policy=PATIENT,
            summary="what became of its execution",
        )
        taken_over = lost_run.taken_over(self._run, evidence, cause, workflow.now())
        if taken_over is not None:
            return await self._follow(taken_over)
        return lost_run.conclude(self._run, evidence, announced=self._announced, cause=cause, now=workflow.now())

    async def _follow(self, started: Advanced) -> Advanced:
        """An execution that needs no slot: it is launched, and its end waited for, from here."""
        await self._become(started)
        self._run = hand_over(self._run)
        execution = DetachedExecution(self._run, self._launch)
        if self._cancelled_by is not None:
            message = "It was cancelled before it had been launched."
            return self._finish(Ending(state=RunState.CANCELLED, reason="cancelled", message=message))
        await execution.launch()
        return self._finish(await execution.end(lambda: self._cancelled_by is not None))

    def _finish(self, ending: Ending) -> Advanced:
        message = ending.message
        return advance(self._run, ending.state, workflow.now(), kind="finished", reason=ending.reason, message=message)

    # After an end that nobody knows -------------------------------------------------------------------

    async def _watch(self) -> None:
        """The lane is let go once a lost execution is over; the run is watched for longer than that."""
        release = asyncio.create_task(self._release_lane())
        ending = await self._late_truth()
        release.cancel()
        if ending is not None:
            await self._become(lost_run.late_truth(self._run, ending, workflow.now()))

    async def _release_lane(self) -> None:
        doubt = lost_run.doubt(self._run, self._launch.heartbeat_seconds)
        if doubt is None:
            return
        if doubt:
            await workflow.sleep(doubt, summary="until a lost execution is over")
        letter = ReleaseLane(lane=self._lane, run_id=self._run.run_id)
        await workflow.execute_local_activity_method(
            PostActivities.tell_lane,
            LaneLetter(workspace=self._run.workspace, schedule_id=self._run.schedule_id, mail=letter),
            start_to_close_timeout=QUICK,
            retry_policy=PATIENT,
        )

    async def _late_truth(self) -> Ending | None:
        every = min(self._launch.heartbeat_seconds, BEAT_SECONDS)
        try:
            truth = await workflow.execute_activity_method(
                InquiryActivities.await_late_truth,
                WatchExecution(run=self._run, until=workflow.now() + WATCH, every_seconds=every),
                schedule_to_close_timeout=WATCH + CLEAN_UP,
                heartbeat_timeout=timedelta(seconds=BEAT_SECONDS * MISSED_HEARTBEATS),
                retry_policy=PATIENT,
                summary="how it ended after all",
            )
        except ActivityError:
            return None
        return truth.ending

    # Parts --------------------------------------------------------------------------------------------

    async def _become(self, change: Advanced) -> None:
        if change.run.state is RunState.CANCELLED and self._cancelled_by is not None:
            change = reworded(change, f"{self._cancelled_by} cancelled it.")
        self._changes.append(change)
        self._run = change.run
        self._show()
        await self._report()

    async def _report(self) -> None:
        """The schedule passes a run's changes on to the read model, and decides what follows from its end. A manual
        run has none, so its changes go straight to the read model, and nothing follows."""
        await workflow.execute_local_activity_method(
            PostActivities.tell_schedule,
            ScheduleLetter(
                workspace=self._run.workspace, schedule_id=self._run.schedule_id, changes=tuple(self._changes)
            ),
            start_to_close_timeout=QUICK,
            retry_policy=PATIENT,
        )
        self._changes.clear()

    def _show(self) -> None:
        workflow.set_current_details(words.run_details(self._run))
        attributes = [visibility.RUN_STATE.value_set(self._run.state)]
        if self._run.run_folder is not None:
            attributes.append(visibility.RUN_FOLDER.value_set(self._run.run_folder))
        workflow.upsert_search_attributes(attributes)


def _found_no_slot(error: ActivityError) -> bool:
    return isinstance(error.cause, ActivityTimeout) and error.cause.type is TimeoutType.SCHEDULE_TO_START
