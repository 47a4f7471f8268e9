"""The real parts that tests share: one PostgreSQL and one Temporal server for each test process."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel import migrate
from readmodel.database import Database

_numbers = itertools.count(1)

# The same examples each time, so that a change is judged by what it changes; others are found by scripts/explore.
# How long an example takes on a shared machine says nothing about the rule under test.
_UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("repeatable", derandomize=True, **_UNTIMED)
hypothesis.settings.register_profile("explore", **_UNTIMED)
hypothesis.settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: what takes minutes must not be begun last, when the other process is done."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PostgresServer]:
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    await migrate.upgrade(postgres.url)
    database = Database(postgres.url)
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    server = TemporalServer(
        tmp_path_factory.mktemp("temporal"), port=free_port(), ui_port=free_port(), namespace="almanac"
    )
    await server.start()
    await server.wait_ready()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def client(temporal: TemporalServer) -> Client:
    return await Client.connect(temporal.address, namespace="almanac", data_converter=pydantic_data_converter)


@pytest.fixture
def workspace() -> str:
    """A name nobody else uses, so that tests share the servers and nothing else."""
    return f"w{next(_numbers)}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    return tmp_path / "storage"
