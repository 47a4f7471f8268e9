"""What benchmarks run against: the embedded servers in a folder of their own, and worker processes on them."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from embedded.child import Child
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel import migrate
from readmodel.database import Database

CHASM = {"history.enableCHASMSchedulerCreation": "true", "history.chasmSchedulerCreationRolloutPercent": "100"}
"""Temporal's newer schedule engine; off by default."""


@dataclass(frozen=True)
class Servers:
    folder: Path
    postgres: PostgresServer
    temporal: TemporalServer
    database: Database
    client: Client

    @property
    def storage(self) -> Path:
        return self.folder / "storage"

    def child(self, *command: str, **settings: str) -> Child:
        """A Python process, not yet started, with a worker's settings: `child("-m", "worker", almanac_…="300")`."""
        code = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(code),
            "ALMANAC_DATABASE_URL": self.postgres.url,
            "ALMANAC_TEMPORAL_ADDRESS": self.temporal.address,
            "ALMANAC_STORAGE": str(self.storage),
            **{name.upper(): value for name, value in settings.items()},
        }
        return Child([sys.executable, *command], log=self.folder / "worker.log", cwd=self.folder, env=environment)

    @asynccontextmanager
    async def worker(self, *command: str, **settings: str) -> AsyncIterator[Child]:
        child = self.child(*command, **settings)
        await child.start()
        try:
            yield child
        finally:
            child.kill()
            await child.wait()


@asynccontextmanager
async def servers(dynamic_config: Mapping[str, str] | None = None) -> AsyncIterator[Servers]:
    with tempfile.TemporaryDirectory(prefix="almanac-bench-") as name:
        folder = Path(name)
        postgres = PostgresServer(folder)
        temporal = TemporalServer(folder, port=free_port(), ui_port=None, dynamic_config=dynamic_config)
        await asyncio.gather(postgres.start(), temporal.start())
        await migrate.upgrade(postgres.url)
        database = Database(postgres.url)
        client = await Client.connect(
            temporal.address, namespace=temporal.namespace, data_converter=pydantic_data_converter
        )
        try:
            yield Servers(folder, postgres, temporal, database, client)
        finally:
            await database.close()
            await temporal.stop()
            await postgres.stop()
