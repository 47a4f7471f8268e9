"""`python -m tests.replay.other_worker`: takes executions as the worker does, and may be killed without harm to
the recorder. Its runs last until then."""

from __future__ import annotations

import asyncio

from executors.registry import Registry
from readmodel.database import Database
from tests.workflows.probe import ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings


async def serve() -> None:
    settings = WorkerSettings()
    client = await wiring.connect(settings)
    probe = ProbeExecutor()
    _, slots = wiring.workers(client, Database(settings.database_url), Registry({probe.name: probe}, {}), settings)
    await slots.run()


if __name__ == "__main__":
    asyncio.run(serve())
