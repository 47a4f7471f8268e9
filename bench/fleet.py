"""Many schedules, each with a pipeline of its own so that no two share a lane, and a ledger of what really ran."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any

from temporalio.client import WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy

from bench.servers import Servers
from domain import ids, messages, planning, schedule_acts, schedule_due
from domain.messages import CreateSchedule, ScheduleInput
from domain.pipeline import PipelineDefinition, Step
from domain.schedule import ScheduleDefinition
from readmodel.pipelines import Pipelines

AT_ONCE = 20
BY = "bench"


class Ledger:
    """One file for each time that a program of a schedule was started, made by the program itself."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder

    def command(self, number: int) -> tuple[str, ...]:
        return ("mktemp", str(self._folder / f"{number}.XXXXXX"))

    def starts(self) -> Counter[int]:
        """How often each number's program was started."""
        return Counter(int(path.name.partition(".")[0]) for path in self._folder.iterdir())

    def times(self) -> list[float]:
        """When each program was started, as seconds since the epoch."""
        return [path.stat().st_mtime for path in self._folder.iterdir()]


def schedule_id(number: int) -> str:
    return f"s{number}"


def definition(workspace: str, number: int, cron: str, **policies: Any) -> ScheduleDefinition:
    name = f"{workspace}/{number}"
    payload = {"pipeline": name, "version": "current"}
    return ScheduleDefinition(name=name, cron=cron, timezone="UTC", payload=payload, **policies)


async def release_pipeline(parts: Servers, workspace: str, number: int, command: tuple[str, ...]) -> None:
    pipelines = Pipelines(parts.database)
    name = f"{workspace}/{number}"
    step = Step(id="only", command=command)
    await pipelines.save(workspace, PipelineDefinition(name=name, steps=(step,)), BY)
    await pipelines.release(workspace, name, BY)


async def create_schedule(parts: Servers, workspace: str, number: int, cron: str) -> None:
    """As a client of a running worker creates it."""
    await parts.client.execute_update_with_start_workflow(
        messages.CREATE_UPDATE,
        CreateSchedule(definition=definition(workspace, number, cron), target=target(workspace, number), by=BY),
        start_workflow_operation=WithStartWorkflowOperation(
            messages.SCHEDULE_WORKFLOW,
            ScheduleInput(workspace=workspace, schedule_id=schedule_id(number)),
            id=ids.schedule_workflow_id(workspace, schedule_id(number)),
            task_queue=messages.TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        ),
    )


async def leave_asleep(parts: Servers, workspace: str, number: int, cron: str, since: datetime) -> None:
    """A schedule that nobody has served since then: what it carries is from that time, and no worker runs."""
    asked = definition(workspace, number, cron)
    state = schedule_acts.create(workspace, schedule_id(number), asked, target(workspace, number), BY, since)
    request = schedule_due.look_around(state, since)
    assert request is not None
    state = schedule_due.seen(state, planning.look_around(request), since)
    await parts.client.start_workflow(
        messages.SCHEDULE_WORKFLOW,
        ScheduleInput(workspace=workspace, schedule_id=schedule_id(number), state=state),
        id=ids.schedule_workflow_id(workspace, schedule_id(number)),
        task_queue=messages.TASK_QUEUE,
    )


def target(workspace: str, number: int) -> str:
    return f"pipeline:{workspace}/{number}"


async def many(do: Callable[[int], Coroutine[Any, Any, None]], n: int) -> None:
    """`do(0)` to `do(n - 1)`, a few at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            await do(number)

    await asyncio.gather(*(one(number) for number in range(n)))
