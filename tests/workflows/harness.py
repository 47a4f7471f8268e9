"""Schedules, lanes and runs driven through Temporal and looked at through the read model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.empty_pb2 import Empty
from temporalio.api.testservice.v1 import SleepRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from domain import ids, messages, planning, schedule_acts, schedule_due
from domain.messages import (
    Act,
    CreateSchedule,
    DropRun,
    ReplanAnswer,
    ReviseSchedule,
    RunNow,
    RunNowAnswer,
    ScheduleAnswer,
    ScheduleInput,
)
from domain.run import Run, RunState, TrailRow
from domain.schedule import ScheduleDefinition, ScheduleView
from readmodel.database import Database
from readmodel.queries import Queries
from tests.waiting import eventually
from tests.workflows.probe import ProbeExecutor

_ids = itertools.count(1)

LONGEST_STEP = timedelta(hours=12)
LONGEST_CALL = timedelta(minutes=2)
SHORTEST_STEP = timedelta(milliseconds=1)
"""What the server's clock counts in."""


@contextmanager
def _stream_may_be_reset() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        if error.status not in {RPCStatusCode.INTERNAL, RPCStatusCode.UNAVAILABLE, RPCStatusCode.UNKNOWN}:
            raise


@dataclass
class Harness:
    client: Client
    database: Database
    probe: ProbeExecutor
    workspace: str
    skips: bool = False
    """Whether its server's clock skips."""
    created: list[str] = field(default_factory=list)
    history_limit: int = messages.HISTORY_LIMIT
    """Of the schedules it creates."""

    async def create(self, *, script: str = "succeed", lane: str = "a", **changes: Any) -> str:
        schedule_id = f"s{next(_ids)}-{self.workspace}"
        fields: dict[str, Any] = {
            "name": schedule_id,
            "cron": "0 0 1 1 *",
            "timezone": "Africa/Abidjan",
            "executor": "probe",
            "payload": {"lane": lane, "script": script},
        }
        definition = ScheduleDefinition(**(fields | changes))
        handle = await self.client.start_workflow(
            messages.SCHEDULE_WORKFLOW,
            ScheduleInput(workspace=self.workspace, schedule_id=schedule_id, history_limit=self.history_limit),
            id=ids.schedule_workflow_id(self.workspace, schedule_id),
            task_queue=messages.TASK_QUEUE,
        )
        request = CreateSchedule(definition=definition, target=f"probe:{lane}", by="test")
        await handle.execute_update(messages.CREATE_UPDATE, request, result_type=ScheduleAnswer)
        self.created.append(schedule_id)
        return schedule_id

    async def asleep_since(self, then: datetime, *, script: str = "succeed", **changes: Any) -> str:
        """A schedule that was last awake at `then`, as after an outage: what it carries is from that time."""
        schedule_id = f"s{next(_ids)}-{self.workspace}"
        fields: dict[str, Any] = {
            "name": schedule_id,
            "timezone": "Africa/Abidjan",
            "executor": "probe",
            "payload": {"lane": "a", "script": script},
        }
        definition = ScheduleDefinition(**(fields | changes))
        state = schedule_acts.create(self.workspace, schedule_id, definition, "probe:a", "test", then)
        request = schedule_due.look_around(state, then)
        assert request is not None
        state = schedule_due.seen(state, planning.look_around(request), then)
        await self.client.start_workflow(
            messages.SCHEDULE_WORKFLOW,
            ScheduleInput(workspace=self.workspace, schedule_id=schedule_id, state=state),
            id=ids.schedule_workflow_id(self.workspace, schedule_id),
            task_queue=messages.TASK_QUEUE,
        )
        return schedule_id

    def handle(self, schedule_id: str) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(ids.schedule_workflow_id(self.workspace, schedule_id))

    async def act(self, schedule_id: str, update: str) -> ScheduleAnswer:
        kind = ReplanAnswer if update == messages.REPLAN_UPDATE else ScheduleAnswer
        answer: ScheduleAnswer = await self.handle(schedule_id).execute_update(update, Act(by="test"), result_type=kind)
        return answer

    async def revise(self, schedule_id: str, expected_revision: int = 1, **changes: Any) -> ScheduleAnswer:
        view = await self.view(schedule_id)
        revised = view.definition.model_copy(update=changes)
        request = ReviseSchedule(
            definition=revised,
            target=f"probe:{revised.payload['lane']}",
            expected_revision=expected_revision,
            by="test",
        )
        answer: ScheduleAnswer = await self.handle(schedule_id).execute_update(
            messages.REVISE_UPDATE, request, result_type=ScheduleAnswer
        )
        return answer

    async def run_now(self, schedule_id: str, key: str = "k", by: str = "test") -> Run:
        answer: RunNowAnswer = await self.handle(schedule_id).execute_update(
            messages.RUN_NOW_UPDATE, RunNow(key=key, by=by), result_type=RunNowAnswer
        )
        return answer.run

    async def drop(self, run: Run) -> ScheduleAnswer:
        answer: ScheduleAnswer = await self.handle(str(run.schedule_id)).execute_update(
            messages.DROP_UPDATE, DropRun(run_id=run.run_id, by="test"), result_type=ScheduleAnswer
        )
        return answer

    async def signal_run_now(self, schedule_id: str, key: str = "k", by: str = "test") -> None:
        await self.handle(schedule_id).signal(messages.RUN_NOW_SIGNAL, RunNow(key=key, by=by))

    async def let_pass(self, time: timedelta) -> None:
        """Only where the server's clock skips. In steps, for each is one call, and a call may not take for ever.

        This server now and then resets the stream of a call that takes long. Its clock goes on all the same, so the
        steps go by that clock and not by the number of answers.
        """
        end = await self.now() + time
        while (left := end - await self.now()) >= SHORTEST_STEP:
            step = SleepRequest()
            step.duration.FromTimedelta(min(left, LONGEST_STEP))
            with _stream_may_be_reset():
                await self.client.test_service.unlock_time_skipping_with_sleep(step, timeout=LONGEST_CALL)

    async def now(self) -> datetime:
        """By the server's clock, where it skips."""
        assert self.skips
        answer = await self.client.test_service.get_current_time(Empty(), retry=True)
        return answer.time.ToDatetime().replace(tzinfo=UTC)

    async def view(self, schedule_id: str) -> ScheduleView:
        view: ScheduleView = await self.handle(schedule_id).query("schedule", result_type=ScheduleView)
        return view

    async def mirrored(self, schedule_id: str) -> ScheduleView:
        return await Queries(self.database).schedule(self.workspace, schedule_id)

    async def runs(self, schedule_id: str | None) -> list[Run]:
        """Oldest first, as the read model has them; without a schedule those of the whole workspace."""
        found: list[Run] = []
        cursor = None
        while True:
            page = await Queries(self.database).runs(self.workspace, schedule_id=schedule_id, limit=200, cursor=cursor)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found[::-1]

    async def trail(self, run_id: str) -> list[TrailRow]:
        return list(await Queries(self.database).trail(self.workspace, run_id))

    async def final(self, schedule_id: str | None, count: int = 1, within: float = 30.0) -> list[Run]:
        """All runs of the schedule, once there are `count` and all have ended."""

        async def look() -> list[Run] | None:
            runs = await self.runs(schedule_id)
            return runs if len(runs) >= count and all(run.is_final for run in runs) else None

        return await eventually(look, within=within, what=f"{count} ended runs of {schedule_id}")

    async def in_state(self, schedule_id: str | None, state: RunState, within: float = 30.0) -> Run:
        async def look() -> Run | None:
            return next((run for run in await self.runs(schedule_id) if run.state is state), None)

        return await eventually(look, within=within, what=f"a run of {schedule_id} in {state}")
