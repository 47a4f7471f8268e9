from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from executors.registry import Registry
from readmodel.database import Database
from tests.sandbox import sandbox
from tests.workflows.harness import Harness
from tests.workflows.probe import ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings


@pytest.fixture(scope="session")
def probe() -> ProbeExecutor:
    return ProbeExecutor()


@pytest.fixture(scope="session")
def worker_settings(tmp_path_factory: pytest.TempPathFactory) -> WorkerSettings:
    return WorkerSettings(
        database_url="unused",
        storage=tmp_path_factory.mktemp("storage"),
        max_concurrent_runs=50,
        heartbeat_interval_seconds=1,
        drain_seconds=1,
    )


@pytest.fixture(scope="session")
async def running(
    client: Client, database: Database, probe: ProbeExecutor, worker_settings: WorkerSettings
) -> AsyncIterator[None]:
    """A worker on the shared servers whose executor does as the test tells it."""
    registry = Registry({probe.name: probe}, {})
    entities, slots = wiring.workers(client, database, registry, worker_settings, runner=sandbox())
    async with entities, slots:
        yield


@pytest.fixture
async def harness(running: None, client: Client, database: Database, probe: ProbeExecutor, workspace: str) -> Harness:
    return Harness(client, database, probe, workspace)
