"""For the tests of the read model: an empty database for each module, its tables made by the migrations."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from embedded.postgres import PostgresServer
from readmodel import migrate
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from readmodel.workspaces import Workspaces
from tests.readmodel.samples import WORKSPACE


@pytest.fixture(scope="session")
def empty_database(postgres: PostgresServer) -> Callable[[], Awaitable[str]]:
    """Makes a database without tables and answers its URL."""

    async def make() -> str:
        name = f"t_{uuid.uuid4().hex}"
        engine = create_async_engine(postgres.url, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.execute(text(f"CREATE DATABASE {name}"))
        await engine.dispose()
        return make_url(postgres.url).set(database=name).render_as_string(hide_password=False)

    return make


@pytest.fixture(scope="module")
async def database_url(empty_database: Callable[[], Awaitable[str]]) -> str:
    url = await empty_database()
    await migrate.upgrade(url)
    return url


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await Workspaces(opened).ensure(WORKSPACE)
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
def projector(database: Database) -> Projector:
    return Projector(database)


@pytest.fixture(scope="module")
def queries(database: Database) -> Queries:
    return Queries(database)
