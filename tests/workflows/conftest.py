from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from executors.registry import Registry
from readmodel.database import Database
from tests.workflows.harness import Harness
from tests.workflows.probe import DetachedProbe, ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings


@pytest.fixture(scope="session")
def probe() -> ProbeExecutor:
    return ProbeExecutor()


@pytest.fixture(scope="session")
def detached_probe() -> DetachedProbe:
    return DetachedProbe()


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
    client: Client,
    database: Database,
    probe: ProbeExecutor,
    detached_probe: DetachedProbe,
    worker_settings: WorkerSettings,
) -> AsyncIterator[None]:
    """A worker on the shared servers whose executors do as the test tells them."""
    executors = Registry({probe.name: probe, detached_probe.name: detached_probe}, {})
    entities, slots = wiring.workers(client, database, executors, worker_settings)
    async with entities, slots:
        yield


@pytest.fixture
async def harness(running: None, client: Client, database: Database, probe: ProbeExecutor, workspace: str) -> Harness:
    return Harness(client, database, probe, workspace)
