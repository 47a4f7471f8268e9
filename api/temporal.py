"""Sends changes of schedules to the workflows that own them, one at a time per schedule.

A workflow takes only a few updates at once and refuses the rest, so writers of one schedule wait here for each
other. The connection is made at the first use and again whenever it is lost: the API starts without Temporal.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TypeVar
from weakref import WeakValueDictionary

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RetryConfig, RPCError, RPCStatusCode

from activities.post import request_lane
from api.refusals import refusals
from domain.errors import AlmanacError, Busy, NotFound
from domain.ids import lane_workflow_id, run_workflow_id, schedule_workflow_id
from domain.lane import Lane
from domain.messages import (
    CANCEL_RUN_SIGNAL,
    CREATE_UPDATE,
    DROP_UPDATE,
    LANE_DROP_SIGNAL,
    REPLAN_UPDATE,
    REVISE_UPDATE,
    RUN_NOW_UPDATE,
    SCHEDULE_WORKFLOW,
    TASK_QUEUE,
    WORKSPACE_SIGNAL,
    Act,
    CancelRun,
    CreateSchedule,
    DropRun,
    LaneDrop,
    LaneRequest,
    ReplanAnswer,
    ReviseSchedule,
    RunNow,
    RunNowAnswer,
    ScheduleAnswer,
    ScheduleInput,
    SetWorkspaceActive,
)
from domain.run import Run
from domain.values import Value

ANSWER_SECONDS = 10.0
"""How long a change may take before the answer is that nobody knows."""
TURN_SECONDS = 10.0
"""How long a change waits for the ones of the same schedule before it."""
AGAIN_SECONDS = 0.05
HEALTH_SECONDS = 2.0

Answer = TypeVar("Answer", bound=Value)


class ScheduleWorkflows:
    """The schedules' workflows as their writers see them. Every method raises domain.errors refusals only."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    async def at(cls, address: str, namespace: str) -> ScheduleWorkflows:
        """Does not connect yet, so it never fails."""
        quick = RetryConfig(max_elapsed_time_millis=3_000, max_retries=5)
        client = await Client.connect(
            address, namespace=namespace, data_converter=pydantic_data_converter, lazy=True, retry_config=quick
        )
        return cls(client)

    async def create(self, workspace: str, schedule_id: str, command: CreateSchedule) -> ScheduleAnswer:
        """Starts the schedule. Repeated, it answers the schedule as it is."""
        workflow_id = schedule_workflow_id(workspace, schedule_id)
        start: WithStartWorkflowOperation[object, object] = WithStartWorkflowOperation(
            SCHEDULE_WORKFLOW,
            ScheduleInput(workspace=workspace, schedule_id=schedule_id),
            id=workflow_id,
            task_queue=TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            static_summary=command.definition.name,
        )
        async with self._turn(workflow_id):
            answer: ScheduleAnswer = await self._client.execute_update_with_start_workflow(
                CREATE_UPDATE,
                command,
                start_workflow_operation=start,
                result_type=ScheduleAnswer,
                rpc_timeout=timedelta(seconds=ANSWER_SECONDS),
            )
        return answer

    async def revise(self, workspace: str, schedule_id: str, command: ReviseSchedule) -> ScheduleAnswer:
        return await self._update(workspace, schedule_id, REVISE_UPDATE, command, ScheduleAnswer)

    async def act(self, workspace: str, schedule_id: str, update: str, by: str) -> ScheduleAnswer:
        """Pause, resume, unblock or delete: `update` is its name on the wire."""
        return await self._update(workspace, schedule_id, update, Act(by=by), ScheduleAnswer)

    async def replan(self, workspace: str, schedule_id: str, by: str) -> ReplanAnswer:
        return await self._update(workspace, schedule_id, REPLAN_UPDATE, Act(by=by), ReplanAnswer)

    async def drop(self, workspace: str, schedule_id: str, command: DropRun) -> ScheduleAnswer:
        """Takes a waiting run off the line."""
        return await self._update(workspace, schedule_id, DROP_UPDATE, command, ScheduleAnswer)

    async def set_workspace_active(self, workspace: str, schedule_id: str, active: bool) -> None:
        """Tells one schedule. It needs no worker to be told; one that is gone needs no telling."""
        handle: WorkflowHandle[object, object] = self._client.get_workflow_handle(
            schedule_workflow_id(workspace, schedule_id)
        )
        with suppress(NotFound), refusals():
            await handle.signal(
                WORKSPACE_SIGNAL, SetWorkspaceActive(active=active), rpc_timeout=timedelta(seconds=ANSWER_SECONDS)
            )

    async def run_now(self, workspace: str, schedule_id: str, command: RunNow) -> RunNowAnswer:
        """The same key is the same run."""
        update_id = f"{RUN_NOW_UPDATE}-{hashlib.sha256(command.key.encode()).hexdigest()[:32]}"
        return await self._update(workspace, schedule_id, RUN_NOW_UPDATE, command, RunNowAnswer, update_id)

    async def cancel_run(self, run: Run, by: str) -> bool:
        """Tells the run's own workflow that it is to end; False where it has none, not yet or no longer."""
        handle: WorkflowHandle[object, object] = self._client.get_workflow_handle(
            run_workflow_id(run.workspace, run.run_id)
        )
        try:
            with refusals():
                await handle.signal(CANCEL_RUN_SIGNAL, CancelRun(by=by), rpc_timeout=timedelta(seconds=ANSWER_SECONDS))
        except NotFound:
            return False
        return True

    async def request_lane(self, workspace: str, lane: str, request: LaneRequest) -> None:
        """Asks for a lane without a schedule. Needs no worker; repeated, it changes nothing."""
        with refusals():
            async with asyncio.timeout(ANSWER_SECONDS):
                await request_lane(self._client, workspace, lane, request)

    async def drop_from_lane(self, run: Run, by: str) -> bool:
        """Takes a manual run off its line, if it waits there; False where its lane does not know it, or is gone."""
        handle: WorkflowHandle[object, object] = self._client.get_workflow_handle(
            lane_workflow_id(run.workspace, run.target)
        )
        limit = timedelta(seconds=ANSWER_SECONDS)
        with suppress(NotFound), refusals():
            known: Lane = await handle.query("lane", result_type=Lane, rpc_timeout=limit)
            await handle.signal(LANE_DROP_SIGNAL, LaneDrop(run_id=run.run_id, by=by), rpc_timeout=limit)
            return known.knows(run.run_id)
        return False

    async def healthy(self) -> bool:
        """Whether Temporal answers now, and knows the namespace."""
        request = DescribeNamespaceRequest(namespace=self._client.namespace)
        try:
            with refusals():
                async with asyncio.timeout(HEALTH_SECONDS):
                    await self._client.workflow_service.describe_namespace(request)
        except AlmanacError:
            return False
        return True

    async def _update(
        self,
        workspace: str,
        schedule_id: str,
        update: str,
        command: Value,
        answer_type: type[Answer],
        update_id: str | None = None,
    ) -> Answer:
        workflow_id = schedule_workflow_id(workspace, schedule_id)
        handle: WorkflowHandle[object, object] = self._client.get_workflow_handle(workflow_id)
        async with self._turn(workflow_id):
            while True:
                try:
                    answer: Answer = await handle.execute_update(
                        update,
                        command,
                        id=update_id,
                        result_type=answer_type,
                        rpc_timeout=timedelta(seconds=ANSWER_SECONDS),
                    )
                except RPCError as error:
                    if not _broken_off(error):
                        raise
                    await asyncio.sleep(AGAIN_SECONDS)
                else:
                    return answer

    @asynccontextmanager
    async def _turn(self, workflow_id: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(workflow_id, asyncio.Lock())
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await turn.acquire()
        except TimeoutError as error:
            raise Busy(
                "schedule.busy", "Others are changing this schedule. Nothing was changed; try again in a moment."
            ) from error
        try:
            with refusals():
                async with asyncio.timeout(ANSWER_SECONDS):
                    yield
        finally:
            turn.release()


def _broken_off(error: RPCError) -> bool:
    """Whether the workflow task that took the change was given up, and all that it did with it: as a workflow is
    about to continue as new and a signal comes in between. Nothing was changed, so it may be sent again."""
    return error.status is RPCStatusCode.FAILED_PRECONDITION and "workflow task failure" in error.message
