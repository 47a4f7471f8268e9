"""The API as its clients see it: over real servers, or with nothing behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from api.settings import Settings
from embedded.postgres import PostgresServer
from readmodel.database import Database
from tests.api.desk import Desk
from tests.serving import serving, standing, token_in

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


@pytest.fixture(scope="session")
def behind_api(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("behind-api")


@pytest.fixture
def storage_behind_api(behind_api: Path) -> Path:
    """Where the API's worker has its run folders."""
    return behind_api / "storage"


@pytest.fixture(scope="session")
async def standing_api(postgres: PostgresServer, database: Database, behind_api: Path) -> AsyncIterator[Settings]:
    async with standing(database, postgres.url, behind_api, max_schedules=5, max_body_bytes=100_000) as settings:
        yield settings


@pytest.fixture(scope="session")
async def api(standing_api: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """An API on real servers, with a worker."""
    async with serving(standing_api) as served:
        yield served


@pytest.fixture
async def desk(api: httpx.AsyncClient, workspace: str) -> Desk:
    """A workspace of the test's own, with one released pipeline."""
    desk = Desk(api, workspace)
    await desk.open()
    return desk
