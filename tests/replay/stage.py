"""What histories are recorded on: real servers, and workers that a scenario can take away."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from embedded.child import Child
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from executors.registry import Registry
from readmodel import migrate
from readmodel.database import Database
from tests.workflows.harness import Harness
from tests.workflows.probe import DetachedProbe, ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings


@dataclass
class Stage:
    folder: Path
    postgres: PostgresServer
    temporal: TemporalServer
    client: Client
    database: Database
    probe: ProbeExecutor = field(default_factory=ProbeExecutor)
    detached: DetachedProbe = field(default_factory=DetachedProbe)
    _slots: AsyncExitStack = field(default_factory=AsyncExitStack)

    def harness(self, workspace: str, history_limit: int | None = None) -> Harness:
        harness = Harness(self.client, self.database, self.probe, workspace)
        if history_limit is not None:
            harness.history_limit = history_limit
        return harness

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        entities, _ = wiring.workers(self.client, self.database, self._registry, self._settings)
        async with entities:
            await self._hire()
            try:
                yield
            finally:
                await self._slots.aclose()

    @asynccontextmanager
    async def without_slots(self) -> AsyncIterator[None]:
        """No worker takes executions."""
        await self._slots.aclose()
        try:
            yield
        finally:
            await self._hire()

    @asynccontextmanager
    async def other_worker(self) -> AsyncIterator[Child]:
        """Executions are taken by a process of their own, which may be killed."""
        settings = {
            "PYTHONPATH": str(Path.cwd()),
            "ALMANAC_DATABASE_URL": self.postgres.url,
            "ALMANAC_TEMPORAL_ADDRESS": self.temporal.address,
            "ALMANAC_STORAGE": str(self.folder / "storage"),
        }
        argv = [sys.executable, "-m", "tests.replay.other_worker"]
        log = self.folder / "other_worker.log"
        child = Child(argv, log=log, cwd=self.folder, env={**os.environ, **settings})
        async with self.without_slots():
            await child.start()
            try:
                yield child
            finally:
                await child.stop((signal.SIGKILL, 5.0))

    @asynccontextmanager
    async def without_database(self) -> AsyncIterator[None]:
        await self.postgres.stop()
        try:
            yield
        finally:
            await self.postgres.start()

    async def _hire(self) -> None:
        # A connection of its own: on one connection there can be only one worker for a queue.
        client = await wiring.connect(self._settings)
        _, slots = wiring.workers(client, self.database, self._registry, self._settings)
        self._slots = AsyncExitStack()
        await self._slots.enter_async_context(slots)

    @property
    def _registry(self) -> Registry:
        return Registry({self.probe.name: self.probe, self.detached.name: self.detached}, {})

    @property
    def _settings(self) -> WorkerSettings:
        return WorkerSettings(
            database_url=self.postgres.url,
            temporal_address=self.temporal.address,
            storage=self.folder / "storage",
            max_concurrent_runs=50,
            heartbeat_interval_seconds=1,
            drain_seconds=1,
        )


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    postgres = PostgresServer(folder)
    temporal = TemporalServer(folder, port=free_port(), ui_port=None)
    await asyncio.gather(postgres.start(), temporal.start())
    await migrate.upgrade(postgres.url)
    database = Database(postgres.url)
    client = await Client.connect(
        temporal.address, namespace=temporal.namespace, data_converter=pydantic_data_converter
    )
    try:
        built = Stage(folder, postgres, temporal, client, database)
        async with built.working():
            yield built
    finally:
        await database.close()
        await temporal.stop()
        await postgres.stop()
