"""The API in the test's own process: for a client of it, or listening on a port; and what stands behind it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from cryptography.fernet import Fernet
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from api.app import create
from api.settings import Settings
from embedded.ports import free_port
from embedded.temporal_server import TemporalServer
from executors.vault import Vault
from readmodel.database import Database
from worker import wiring
from worker.settings import WorkerSettings

TOKEN = "a-token-for-the-tests-only"  # noqa: S105  it opens nothing


def token_in(folder: Path) -> Path:
    file = folder / "token"
    file.touch(0o600)
    file.write_text(f"{TOKEN}\n")
    return file


def key_in(folder: Path) -> Path:
    file = folder / "secret.key"
    file.touch(0o600)
    file.write_text(f"{Fernet.generate_key().decode()}\n")
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
async def standing(
    database: Database, database_url: str, folder: Path, *, max_schedules: int = 100, max_body_bytes: int = 1_000_000
) -> AsyncIterator[Settings]:
    """A Temporal server of its own, so that no other test's worker takes its tasks, with a worker of the product;
    the value is the settings of an API in front of them."""
    temporal = TemporalServer(folder, port=free_port(), ui_port=free_port(), namespace="almanac")
    await temporal.start()
    await temporal.wait_ready()
    worker = WorkerSettings(
        database_url=database_url,
        storage=folder / "storage",
        secret_key_file=key_in(folder),
        max_concurrent_runs=20,
        heartbeat_interval_seconds=1,
        drain_seconds=1,
    )
    client = await Client.connect(temporal.address, namespace="almanac", data_converter=pydantic_data_converter)
    executors = wiring.executors(client, database, Vault.at(worker.secret_key_file))
    entities, slots = wiring.workers(client, database, executors, worker)
    async with entities, slots:
        yield Settings(
            database_url=database_url,
            temporal_address=temporal.address,
            storage=worker.storage,
            heartbeat_interval_seconds=worker.heartbeat_interval_seconds,
            token_file=token_in(folder),
            secret_key_file=worker.secret_key_file,
            max_schedules_per_workspace=max_schedules,
            max_body_bytes=max_body_bytes,
        )
    await temporal.stop()
