"""Waiting for the end of a run whose workflow is nobody's child any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from domain import ids
from domain.run import Run
from domain.values import Value

BEAT_SECONDS = 10


class WatchRun(Value):
    workspace: str
    run_id: str


class RunEnd(Value):
    """The run as its workflow left it; None when that workflow was ended from outside or is gone."""

    run: Run | None


@dataclass(frozen=True)
class WatchingActivities:
    client: Client

    @activity.defn(name="almanac.await_run_end")
    async def await_run_end(self, watch: WatchRun) -> RunEnd:
        handle = self.client.get_workflow_handle(ids.run_workflow_id(watch.workspace, watch.run_id), result_type=Run)
        with beating():
            try:
                return RunEnd(run=await handle.result())
            except WorkflowFailureError:
                return RunEnd(run=None)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return RunEnd(run=None)
                raise


@contextmanager
def beating() -> Iterator[None]:
    """Signs of life meanwhile, one every BEAT_SECONDS."""
    task = asyncio.create_task(_beat())
    try:
        yield
    finally:
        task.cancel()


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT_SECONDS)
