"""The run's workflow: has one run executed, and knows how it ended.

Its turn has come and its dependencies are met before it starts. What it returns is the run in its final state.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

with workflow.unsafe.imports_passed_through():
    from activities import visibility
    from activities.executions import ExecuteRun, ExecutionActivities
    from activities.post import PostActivities, ScheduleLetter
    from domain import messages
    from domain.messages import ExecutionStarted, RunOrder
    from domain.run import Advanced, Run, RunState, advance, hand_over, note
    from workflows import words
    from workflows.outlet import ONCE, QUICK

CAPACITY_PAUSE = timedelta(seconds=30)
"""How long a run waits for a free slot before it counts as tried."""

MISSED_HEARTBEATS = 6
"""So many in a row and a worker is taken for lost."""

CLEAN_UP = timedelta(minutes=2)
"""What an execution gets on top of its timeout to end its processes and say so."""


@workflow.defn(name=messages.RUN_WORKFLOW)
class RunWorkflow:
    @workflow.init
    def __init__(self, order: RunOrder) -> None:
        self._launch = order.launch
        self._run = order.run
        self._changes: list[Advanced] = []
        self._announced = False

    @workflow.run
    async def run(self, order: RunOrder) -> Run:
        workflow.set_current_details(words.run_details(self._run))
        ended = await self._admit()
        self._changes.append(ended)
        self._run = ended.run
        self._show()
        await self._report()
        return self._run

    @workflow.signal(name=messages.EXECUTION_STARTED_SIGNAL)
    def execution_started(self, started: ExecutionStarted) -> None:
        if not self._run.is_final:
            self._run = started.run
            self._announced = True
            self._show()

    @workflow.query(name="run")
    def current(self) -> Run:
        return self._run

    async def _admit(self) -> Advanced:
        """Asks for a slot until it has one or the lateness window closes."""
        until = workflow.now() + timedelta(seconds=self._launch.lateness_seconds)
        while True:
            attempt = self._run = hand_over(self._run)
            try:
                return await self._execute(attempt)
            except ActivityError as error:
                if not _found_no_slot(error):
                    return self._lost(attempt, error)
            now = workflow.now()
            if now >= until:
                message = "No worker had a free slot while it was worth starting."
                return advance(
                    hand_over(attempt), RunState.NOT_STARTED, now, kind="finished", reason="capacity", message=message
                )
            retried = note(hand_over(attempt), "capacity_retried", now, "No worker had a free slot yet.")
            self._run = retried.run
            self._changes.append(retried)

    async def _execute(self, attempt: Run) -> Advanced:
        timeout = timedelta(seconds=self._launch.execution_timeout_seconds)
        executed = await workflow.execute_activity_method(
            ExecutionActivities.execute_run,
            ExecuteRun(run=attempt, launch=self._launch),
            task_queue=messages.EXECUTIONS_QUEUE,
            schedule_to_start_timeout=CAPACITY_PAUSE,
            start_to_close_timeout=timeout + CLEAN_UP,
            heartbeat_timeout=timedelta(seconds=self._launch.heartbeat_seconds * MISSED_HEARTBEATS),
            retry_policy=ONCE,
            summary=f"{attempt.target} for {attempt.schedule_name}",
        )
        return executed.change

    def _lost(self, attempt: Run, error: ActivityError) -> Advanced:
        """Its worker stopped saying that it is alive. What it had begun may have happened or not."""
        if self._announced:
            reason, message = "instance_lost", "Its worker was lost while it ran."
        else:
            reason, message = "start_unconfirmed", "Its worker was lost before it had confirmed the start."
        return advance(
            hand_over(self._run if self._announced else attempt),
            RunState.UNKNOWN,
            workflow.now(),
            kind="finished",
            reason=reason,
            message=message,
            data={"cause": str(error.cause)},
        )

    async def _report(self) -> None:
        """The schedule passes a run's changes on to the read model, and decides what follows from its end."""
        await workflow.execute_local_activity_method(
            PostActivities.tell_schedule,
            ScheduleLetter(
                workspace=self._run.workspace, schedule_id=self._run.schedule_id, changes=tuple(self._changes)
            ),
            start_to_close_timeout=QUICK,
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30)),
        )

    def _show(self) -> None:
        workflow.set_current_details(words.run_details(self._run))
        attributes = [visibility.RUN_STATE.value_set(self._run.state)]
        if self._run.run_folder is not None:
            attributes.append(visibility.RUN_FOLDER.value_set(self._run.run_folder))
        workflow.upsert_search_attributes(attributes)


def _found_no_slot(error: ActivityError) -> bool:
    return isinstance(error.cause, ActivityTimeout) and error.cause.type is TimeoutType.SCHEDULE_TO_START
