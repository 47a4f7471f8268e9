"""A server whose clock skips to the next timer, and a worker on it: a simulated year in seconds."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from embedded.temporal_server import SEARCH_ATTRIBUTES
from executors.registry import Registry
from readmodel.database import Database
from tests.workflows.harness import Harness
from tests.workflows.probe import ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings


@asynccontextmanager
async def skipping(database: Database, settings: WorkerSettings, workspace: str) -> AsyncIterator[Harness]:
    probe = ProbeExecutor()
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=_server(), data_converter=pydantic_data_converter
    ) as environment:
        await _register_search_attributes(environment)
        client = await _calm_client(environment.client)
        entities, slots = wiring.workers(client, database, Registry({probe.name: probe}, {}), settings)
        async with entities, slots:
            yield Harness(client, database, probe, workspace, skips=True)


async def _calm_client(client: Client) -> Client:
    """This server ends a connection that sends pings as often as the SDK does by itself, and what is under way with
    it."""
    return await Client.connect(
        client.service_client.config.target_host,
        namespace=client.namespace,
        data_converter=pydantic_data_converter,
        keep_alive_config=None,
    )


async def _register_search_attributes(environment: WorkflowEnvironment) -> None:
    """The same names and types that the embedded server registers at its start."""
    types = {
        name: IndexedValueType.ValueType(IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}"))
        for name, kind in SEARCH_ATTRIBUTES.items()
    }
    await environment.client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace=environment.client.namespace, search_attributes=types)
    )


def _server() -> str:
    return str(Path(sys.executable).parent / "temporal-test-server")
