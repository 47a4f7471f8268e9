"""A worker killed at each boundary of an execution, halted, stopped, or asked to cancel: how the run then ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError

from domain import ids, messages
from domain.messages import CancelRun
from domain.run import Run, RunState
from embedded.child import Child
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from evidence import folders
from evidence.book import RunFolder
from executors.registry import Registry
from executors.started_workflows import Workflows
from executors.workflow import WorkflowExecutor
from readmodel.claims import Claims
from readmodel.database import Database
from tests.foreign_workflows import QUEUE, Hold, foreign_worker
from tests.waiting import eventually
from tests.workflows.harness import Harness
from tests.workflows.manual import ask
from tests.workflows.probe import ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(240)]


@dataclass(frozen=True)
class House:
    """A Temporal server of its own, so that no other worker takes its executions, and a worker without slots."""

    folder: Path
    database: Database
    database_url: str
    temporal: TemporalServer
    client: Client

    def harness(self, workspace: str) -> Harness:
        return Harness(self.client, self.database, ProbeExecutor(), workspace)

    @asynccontextmanager
    async def worker(self, boundary: str) -> AsyncIterator[Child]:
        settings = {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "ALMANAC_DATABASE_URL": self.database_url,
            "ALMANAC_TEMPORAL_ADDRESS": self.temporal.address,
            "ALMANAC_STORAGE": str(self.folder / "storage"),
            "ALMANAC_HEARTBEAT_INTERVAL_SECONDS": "1",
            "ALMANAC_DRAIN_SECONDS": "1",
        }
        argv = [sys.executable, "-m", "tests.e2e.dying_worker", boundary]
        log = self.folder / f"{boundary}.log"
        child = Child(argv, log=log, cwd=self.folder, env={**os.environ, **settings})
        await child.start()
        try:
            yield child
        finally:
            child.send(signal.SIGCONT)
            await child.stop((signal.SIGKILL, 5.0))

    def began(self, run: Run) -> bool:
        return (self.folder / "storage" / run.workspace / "probe" / "runs" / f"{run.run_folder}" / "began").exists()

    async def begun(self, run: Run) -> None:
        """A claim is recorded a moment before its execution begins, and a worker lost between them leaves another
        end."""

        async def look() -> bool:
            return self.began(run)

        await eventually(look, what="begun")


@pytest.fixture(scope="module")
async def house(
    postgres: PostgresServer, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("house")
    temporal = TemporalServer(folder, port=free_port(), ui_port=None, namespace="almanac")
    await temporal.start()
    await temporal.wait_ready()
    client = await Client.connect(temporal.address, namespace="almanac", data_converter=pydantic_data_converter)
    settings = WorkerSettings(
        database_url=postgres.url,
        storage=folder / "storage",
        temporal_address=temporal.address,
        heartbeat_interval_seconds=1,
    )
    elsewhere = WorkflowExecutor(Workflows(client))
    entities, _ = wiring.workers(client, database, Registry({elsewhere.name: elsewhere}, {}), settings)
    async with entities:
        yield House(folder, database, postgres.url, temporal, client)
    await temporal.stop()


async def ended(harness: Harness, schedule: str, within: float = 60.0) -> Run:
    (run,) = await harness.final(schedule, within=within)
    return run


async def cancel(harness: Harness, run: Run) -> None:
    handle = harness.client.get_workflow_handle(ids.run_workflow_id(run.workspace, run.run_id))
    await handle.signal(messages.CANCEL_RUN_SIGNAL, CancelRun(by="somebody"))


@pytest.mark.parametrize(
    ("boundary", "state", "reason", "began"),
    [
        ("claimed", RunState.UNKNOWN, "start_unconfirmed", False),
        ("executing", RunState.UNKNOWN, "instance_lost", True),
        ("ended", RunState.UNKNOWN, "instance_lost", True),
        ("written", RunState.SUCCEEDED, None, True),
        ("recorded", RunState.SUCCEEDED, None, True),
    ],
)
async def test_killed_at_a_boundary(
    house: House, workspace: str, boundary: str, state: RunState, reason: str | None, began: bool
) -> None:
    harness = house.harness(workspace)
    schedule = await harness.create()
    async with house.worker(boundary):
        await harness.run_now(schedule)
        run = await ended(harness, schedule)
    assert (run.state, run.reason) == (state, reason)
    assert house.began(run) is began
    assert ((await harness.view(schedule)).blocked is not None) is (state is RunState.UNKNOWN)


def elsewhere(kind: str) -> dict[str, Any]:
    """What is changed of a schedule so that it runs a workflow of another team, on a lane of its own."""
    return {"executor": "workflow", "payload": {"workflow": kind, "task_queue": QUEUE, "args": ["told"]}}


async def test_killed_after_the_claim_what_needs_no_slot_is_launched_by_another(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    schedule = await harness.create(**elsewhere("Echo"))
    async with foreign_worker(house.client), house.worker("claimed"):
        await harness.run_now(schedule)
        run = await ended(harness, schedule)
    assert run.state is RunState.SUCCEEDED
    assert [row.kind for row in await harness.trail(run.run_id)] == [
        "recorded",
        "claimed",
        "started",
        "launch_taken_over",
        "finished",
    ]
    assert await house.client.get_workflow_handle(str(run.execution_id)).result() == ["told"]
    assert (await harness.view(schedule)).blocked is None


async def test_more_go_on_elsewhere_than_there_are_slots(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    slots = WorkerSettings.model_fields["max_concurrent_runs"].default
    async with foreign_worker(house.client), house.worker("healthy"):
        schedules = [await harness.create(lane=f"l{n}", **elsewhere("Hold")) for n in range(slots + 1)]
        for schedule in schedules:
            await harness.run_now(schedule)
        running = [await harness.in_state(schedule, RunState.RUNNING) for schedule in schedules]
        for run in running:
            await eventually(partial(let_go, house.client, run), what="its workflow")
        for schedule in schedules:
            assert (await ended(harness, schedule)).state is RunState.SUCCEEDED


async def let_go(client: Client, run: Run) -> bool:
    """False while its workflow has not been launched yet."""
    try:
        await client.get_workflow_handle(str(run.execution_id)).signal(Hold.let_go)
    except RPCError:
        return False
    return True


async def test_killed_before_the_claim_it_is_tried_again(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    schedule = await harness.create()
    async with house.worker("preparing") as dying:
        await harness.run_now(schedule)
        await dying.wait()
    async with house.worker("healthy"):
        run = await ended(harness, schedule, within=90)
    assert run.state is RunState.SUCCEEDED
    kinds = [row.kind for row in await harness.trail(run.run_id)]
    assert kinds == ["recorded", "capacity_retried", "claimed", "started", "finished"]


async def test_killed_with_its_folder_bound_it_keeps_the_folder(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    schedule = await harness.create()
    async with house.worker("bound") as dying:
        await harness.run_now(schedule)
        await dying.wait()
    runs = house.folder / "storage" / workspace / "probe" / "runs"
    (bound,) = [path.name for path in runs.iterdir() if RunFolder.parse(path.name)]
    async with house.worker("healthy"):
        run = await ended(harness, schedule, within=90)
    assert (run.state, run.run_folder) == (RunState.SUCCEEDED, bound)
    assert [path.name for path in runs.iterdir() if RunFolder.parse(path.name)] == [bound]


async def test_a_manual_run_whose_worker_is_killed_keeps_its_files_when_the_next_takes_the_slot(
    house: House, workspace: str
) -> None:
    harness = house.harness(workspace)
    async with house.worker("executing"):
        await ask(harness)
        (lost,) = await harness.final(None, within=60)
    assert (lost.state, lost.reason, lost.run_folder) == (RunState.UNKNOWN, "instance_lost", "iteration-0")
    async with house.worker("healthy"):
        await ask(harness, key="next")
        _, after = await harness.final(None, 2, within=90)
    assert (after.state, after.run_folder) == (RunState.SUCCEEDED, "iteration-0")
    where = (house.folder / "storage", workspace, "probe")
    assert folders.place_of(*where, lost.run_id) == "iteration-1"
    assert (folders.run_folder_path(*where, "iteration-1") / "began").exists()


async def test_killed_before_the_claim_and_not_worth_a_second_try(house: House, workspace: str) -> None:
    """The run is void before that is said, so that no worker can claim it afterwards."""
    harness = house.harness(workspace)
    schedule = await harness.create(lateness_seconds=0)
    async with house.worker("preparing"):
        await harness.run_now(schedule)
        run = await ended(harness, schedule, within=90)
    assert (run.state, run.reason) == (RunState.NOT_STARTED, "capacity")
    claim = await Claims(house.database).execution_of(run.run_id)
    assert claim is not None
    assert claim.worker is None
    assert (await harness.view(schedule)).blocked is None


async def test_no_worker_has_a_slot_while_it_is_worth_starting(house: House, workspace: str) -> None:
    """Each try is on the trail and counted, and nothing is blocked."""
    harness = house.harness(workspace)
    schedule = await harness.create(lateness_seconds=0)
    await harness.run_now(schedule)
    run = await ended(harness, schedule)
    assert (run.state, run.reason) == (RunState.NOT_STARTED, "capacity")
    trail = await harness.trail(run.run_id)
    assert [(row.kind, row.data.get("retries")) for row in trail][1:] == [("capacity_retried", 1), ("finished", None)]
    assert (await harness.view(schedule)).blocked is None


async def test_a_halted_worker_tells_the_truth_late(house: House, workspace: str) -> None:
    """Its lane goes on after the fence, its schedule stays blocked, and the same run is updated."""
    harness = house.harness(workspace)
    schedule = await harness.create(script="nap")
    other = await harness.create()
    async with house.worker("healthy") as halted:
        await harness.run_now(schedule)
        await house.begun(await harness.in_state(schedule, RunState.RUNNING))
        halted.send(signal.SIGSTOP)
        unknown = await ended(harness, schedule)
        assert (unknown.state, unknown.reason) == (RunState.UNKNOWN, "instance_lost")
        async with house.worker("healthy"):
            await harness.run_now(other)
            assert (await ended(harness, other)).state is RunState.SUCCEEDED
        halted.send(signal.SIGCONT)
        run = await harness.in_state(schedule, RunState.SUCCEEDED)
    assert run.run_id == unknown.run_id
    assert [row.kind for row in await harness.trail(run.run_id)][-2:] == ["finished", "updated_after_unknown"]
    view = await harness.view(schedule)
    assert view.blocked is not None
    assert view.blocked.reason == "instance_lost"
    assert view.last_run is not None
    assert view.last_run.state is RunState.SUCCEEDED


async def test_a_worker_that_shuts_down_aborts_what_goes_on(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    schedule = await harness.create(script="hold")
    async with house.worker("healthy") as stopping:
        await harness.run_now(schedule)
        await harness.in_state(schedule, RunState.RUNNING)
        stopping.send(signal.SIGTERM)
        run = await ended(harness, schedule)
        assert await stopping.wait() == 0
    assert (run.state, run.reason) == (RunState.ABORTED, "shutdown")
    assert (await harness.view(schedule)).blocked is None


async def test_a_person_cancels_what_runs_and_nothing_else(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    schedule, beside = await harness.create(script="hold"), await harness.create(script="hold", lane="b")
    async with house.worker("healthy"):
        for one in (schedule, beside):
            await harness.run_now(one)
        running = await harness.in_state(schedule, RunState.RUNNING)
        await harness.in_state(beside, RunState.RUNNING)
        await cancel(harness, running)
        run = await ended(harness, schedule)
        assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled")
        assert run.message == "somebody cancelled it."
        assert (await harness.view(schedule)).blocked is None
        assert [one.state for one in await harness.runs(beside)] == [RunState.RUNNING]
        await cancel(harness, (await harness.runs(beside))[0])
        await ended(harness, beside)


async def test_a_person_cancels_what_no_worker_has_taken(house: House, workspace: str) -> None:
    harness = house.harness(workspace)
    schedule = await harness.create()
    asked = await harness.run_now(schedule)

    async def begun() -> bool:
        return bool([w async for w in harness.client.list_workflows(f"WorkflowId = 'run/{workspace}/{asked.run_id}'")])

    await eventually(begun, what="the run's workflow")
    await cancel(harness, asked)
    run = await ended(harness, schedule)
    assert (run.state, run.reason, run.execution_id) == (RunState.CANCELLED, "cancelled", None)
