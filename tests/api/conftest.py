"""The API as its clients see it: over real servers, or with nothing behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from temporalio.client import Client

from api.app import create
from api.settings import Settings
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel.database import Database
from tests.api.desk import Desk
from worker import wiring
from worker.settings import WorkerSettings

TOKEN = "a-token-for-the-tests-only"  # noqa: S105  it opens nothing
NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="session")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("api") / "token"
    file.touch(0o600)
    file.write_text(f"{TOKEN}\n")
    return file


@asynccontextmanager
async def serving(settings: Settings, token: str | None = TOKEN) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a new API under these settings, started and stopped as a server would."""
    app = create(settings)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://almanac", headers=headers) as client,
    ):
        yield client


@pytest.fixture(scope="session")
async def dark(token_file: Path) -> AsyncIterator[httpx.AsyncClient]:
    """An API with neither database nor Temporal."""
    settings = Settings(
        database_url=f"postgresql+asyncpg://nobody@{NOWHERE}/nothing", temporal_address=NOWHERE, token_file=token_file
    )
    async with serving(settings) as client:
        yield client


@pytest.fixture(scope="session")
async def api(
    token_file: Path,
    postgres: PostgresServer,
    temporal: TemporalServer,
    client: Client,
    database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[httpx.AsyncClient]:
    """An API on real servers, with a worker."""
    worker = WorkerSettings(
        database_url=postgres.url,
        storage=tmp_path_factory.mktemp("storage"),
        max_concurrent_runs=20,
        heartbeat_interval_seconds=1,
        drain_seconds=1,
    )
    entities, slots = wiring.workers(client, database, wiring.executors(database), worker)
    settings = Settings(
        database_url=postgres.url,
        temporal_address=temporal.address,
        token_file=token_file,
        max_schedules_per_workspace=5,
        max_body_bytes=100_000,
    )
    async with entities, slots, serving(settings) as served:
        yield served


@pytest.fixture
async def desk(api: httpx.AsyncClient, workspace: str) -> Desk:
    """A workspace of the test's own, with one released pipeline."""
    desk = Desk(api, workspace)
    await desk.open()
    return desk
