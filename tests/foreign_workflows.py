"""Workflows of another team, and a worker of theirs: nothing in them knows Almanac."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "settlement"


@workflow.defn
class Echo:
    @workflow.run
    async def run(self, *args: Any) -> Any:
        return list(args)


@workflow.defn
class Fail:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("the ledger is closed")


@workflow.defn
class Return:
    """Something strange."""

    @workflow.run
    async def run(self, what: str) -> Any:
        match what:
            case "bytes":
                return b"\xff\x00"
            case "nan":
                return float("nan")
            case "flood":
                return "x" * 100_000
            case "half a pair":
                return "\ud800"
            case "depth":
                deep: list[Any] = []
                for _ in range(500):
                    deep = [deep]
                return deep
            case _:
                raise ApplicationError("y" * 100_000)


@workflow.defn
class Hold:
    """Until it is let go or cancelled."""

    def __init__(self) -> None:
        self._is_let_go = False

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self._is_let_go)
        return "let go"

    @workflow.signal
    def let_go(self) -> None:
        self._is_let_go = True


@workflow.defn
class GoOn:
    """As a second run of the same workflow."""

    @workflow.run
    async def run(self, left: int) -> str:
        if left:
            workflow.continue_as_new(left - 1)
        return "gone on"


@asynccontextmanager
async def foreign_worker(client: Client) -> AsyncIterator[None]:
    workflows = [Echo, Fail, Return, Hold, GoOn]
    async with Worker(client, task_queue=QUEUE, workflows=workflows, workflow_runner=UnsandboxedWorkflowRunner()):
        yield
