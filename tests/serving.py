"""The API in the test's own process: for a client of it, or listening on a port; and the worker behind it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from temporalio.client import Client

from api.app import create
from api.settings import Settings
from readmodel.database import Database
from worker import wiring
from worker.settings import WorkerSettings

TOKEN = "a-token-for-the-tests-only"  # noqa: S105  it opens nothing


def token_in(folder: Path) -> Path:
    file = folder / "token"
    file.touch(0o600)
    file.write_text(f"{TOKEN}\n")
    return file


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a new API under these settings, started and stopped as a server would."""
    app = create(settings)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://almanac", headers=headers) as client,
    ):
        yield client


@asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[str]:
    """A new API on a free port of this machine; the value is its address."""
    server = uvicorn.Server(uvicorn.Config(create(settings), log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server_task = asyncio.create_task(server.serve([listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await server_task


@asynccontextmanager
async def working(client: Client, database: Database, storage: Path) -> AsyncIterator[None]:
    """A worker with the executors of the product."""
    settings = WorkerSettings(
        database_url="given",
        storage=storage,
        max_concurrent_runs=20,
        heartbeat_interval_seconds=1,
        drain_seconds=1,
    )
    entities, slots = wiring.workers(client, database, wiring.executors(database), settings)
    async with entities, slots:
        yield
