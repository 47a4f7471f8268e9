"""The API as its clients see it: over real servers, or with nothing behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from temporalio.client import Client

from api.settings import Settings
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel.database import Database
from tests.api.desk import Desk
from tests.serving import serving, token_in, working

NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="session")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return token_in(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="session")
async def dark(token_file: Path) -> AsyncIterator[httpx.AsyncClient]:
    """An API with neither database nor Temporal."""
    settings = Settings(
        database_url=f"postgresql+asyncpg://nobody@{NOWHERE}/nothing", temporal_address=NOWHERE, token_file=token_file
    )
    async with serving(settings) as client:
        yield client


@pytest.fixture(scope="package")
async def api(
    token_file: Path,
    postgres: PostgresServer,
    temporal: TemporalServer,
    client: Client,
    database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[httpx.AsyncClient]:
    """An API on real servers, with a worker."""
    settings = Settings(
        database_url=postgres.url,
        temporal_address=temporal.address,
        token_file=token_file,
        max_schedules_per_workspace=5,
        max_body_bytes=100_000,
    )
    async with working(client, database, tmp_path_factory.mktemp("storage")), serving(settings) as served:
        yield served


@pytest.fixture
async def desk(api: httpx.AsyncClient, workspace: str) -> Desk:
    """A workspace of the test's own, with one released pipeline."""
    desk = Desk(api, workspace)
    await desk.open()
    return desk
