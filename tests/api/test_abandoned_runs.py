"""Manual runs whose lane, or whose workflow too, somebody has ended by hand: a person can still end them honestly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client

from domain import ids
from embedded.postgres import PostgresServer
from readmodel.database import Database
from tests.api.desk import Desk
from tests.serving import serving, standing
from tests.waiting import eventually

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
async def both(
    postgres: PostgresServer, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Any, Client]]:
    """The API, and Temporal as an operator reaches it."""
    async with standing(database, postgres.url, tmp_path_factory.mktemp("abandoned")) as settings:
        temporal = await Client.connect(settings.temporal_address, namespace=settings.temporal_namespace)
        async with serving(settings) as http:
            yield http, temporal


@pytest.fixture
async def bench(both: tuple[Any, Client], workspace: str) -> tuple[Desk, Client]:
    http, temporal = both
    desk = Desk(http, workspace)
    await desk.open()
    await desk.release("slow", ["sleep", "600"])
    return desk, temporal


async def asked(desk: Desk, state: str) -> str:
    run_id = str((await desk.post("/pipelines/slow/runs")).json()["run_id"])

    async def look() -> bool:
        return bool((await desk.get(f"/runs/{run_id}")).json()["state"] == state)

    await eventually(look, what=f"{run_id} to be {state}")
    return run_id


async def cancelled(desk: Desk, run_id: str) -> tuple[str, str | None]:
    answer = await desk.post(f"/runs/{run_id}/cancel")
    assert answer.status_code == 202, answer.text
    ended = await desk.ended(run_id)
    return ended["state"], ended["reason"]


async def test_one_that_waited_in_a_lane_that_is_gone_is_dropped(bench: tuple[Desk, Client]) -> None:
    desk, temporal = bench
    running, waiting = await asked(desk, "running"), await asked(desk, "waiting")
    await temporal.get_workflow_handle(ids.lane_workflow_id(desk.workspace, "pipeline:slow")).terminate("as told")

    assert await cancelled(desk, waiting) == ("skipped", "operator")
    assert await cancelled(desk, running) == ("cancelled", "cancelled")


async def test_one_that_ran_and_whose_workflow_is_gone_too_ends_by_what_is_proven(bench: tuple[Desk, Client]) -> None:
    """Its worker may have noticed by then, and have written down that it stopped the execution."""
    desk, temporal = bench
    running = await asked(desk, "running")
    await temporal.get_workflow_handle(ids.lane_workflow_id(desk.workspace, "pipeline:slow")).terminate("as told")
    await temporal.get_workflow_handle(ids.run_workflow_id(desk.workspace, running)).terminate("as told")

    assert await cancelled(desk, running) in (("unknown", "instance_lost"), ("aborted", None))
    trail = (await desk.get(f"/runs/{running}/trail")).json()["items"]
    assert [row["kind"] for row in trail] == ["recorded", "claimed", "started", "finished"]
    assert await cancelled(desk, await asked(desk, "running")) == ("cancelled", "cancelled")
