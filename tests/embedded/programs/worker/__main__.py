"""A worker that polls, and ends when it is asked to."""

import asyncio
import os
import signal

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker


@workflow.defn
class Nothing:
    @workflow.run
    async def run(self) -> None:
        """Nothing."""


async def main() -> None:
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    address, namespace = os.environ["ALMANAC_TEMPORAL_ADDRESS"], os.environ["ALMANAC_TEMPORAL_NAMESPACE"]
    client = await Client.connect(address, namespace=namespace)
    async with Worker(client, task_queue="almanac", workflows=[Nothing]):
        await asked.wait()


if __name__ == "__main__":
    asyncio.run(main())
