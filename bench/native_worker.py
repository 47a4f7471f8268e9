"""The anchor: a workflow of one empty activity, as Temporal's own Schedules start it. The activity's first line
notes the time."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

TASK_QUEUE = "native-herd"


@activity.defn(name="stamp")
async def stamp() -> None:
    now = time.time()
    (Path(os.environ["NATIVE_STAMPS"]) / str(activity.info().workflow_id)).write_text(repr(now))


@workflow.defn(name="native")
class NativeWorkflow:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(stamp, start_to_close_timeout=timedelta(minutes=1))


async def main() -> None:
    client = await Client.connect(os.environ["ALMANAC_TEMPORAL_ADDRESS"], namespace="almanac")
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[NativeWorkflow],
        activities=[stamp],
        max_concurrent_activities=2000,
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
