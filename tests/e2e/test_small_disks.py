"""A worker whose storage is full or can't be written to: the run ends `folder_unwritable` and nothing else happens."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from domain.pipeline import PipelineDefinition, Step
from domain.run import Run, RunState
from domain.schedule import Condition
from embedded.child import Child
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.pipelines import Pipelines
from readmodel.workspaces import Workspaces
from tests.evidence.small_disks import APART, needs_small_disks
from tests.workflows.harness import Harness
from tests.workflows.probe import ProbeExecutor

pytestmark = [pytest.mark.stack, pytest.mark.slow, needs_small_disks]

PIPELINE = "close"
ON_A_DISK_OF_ITS_OWN = 'mount -t tmpfs -o "$2" disk "$1" && exec "$3" -m worker'


@dataclass(frozen=True)
class Place:
    """Real servers, and a workspace with one pipeline and one schedule of it."""

    folder: Path
    database: Database
    database_url: str
    temporal: TemporalServer
    harness: Harness

    @asynccontextmanager
    async def worker(self, disk: str) -> AsyncIterator[Child]:
        """The product's worker, whose storage is an empty disk mounted with these options, seen by nobody else."""
        storage = self.folder / "storage"
        storage.mkdir()
        settings = {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "ALMANAC_DATABASE_URL": self.database_url,
            "ALMANAC_TEMPORAL_ADDRESS": self.temporal.address,
            "ALMANAC_STORAGE": str(storage),
            "ALMANAC_DRAIN_SECONDS": "1",
        }
        argv = [*APART, "sh", "-c", ON_A_DISK_OF_ITS_OWN, "sh", str(storage), disk, sys.executable]
        log = self.folder / "worker.log"
        child = Child(argv, log=log, cwd=self.folder, env={**os.environ, **settings})
        await child.start()
        try:
            yield child
        finally:
            await child.stop((signal.SIGTERM, 10.0))

    def seen_by(self, worker: Child) -> Path:
        """The worker's storage, as it sees it."""
        return Path(f"/proc/{worker.pid}/root{self.folder / 'storage'}")

    async def ran(self, schedule: str, number: int) -> Run:
        await self.harness.run_now(schedule, f"k{number}")
        return (await self.harness.final(schedule, number))[-1]

    async def refused(self, schedule: str, run: Run, because: str) -> None:
        assert (run.state, run.reason) == (RunState.NOT_STARTED, "folder_unwritable")
        assert because in (run.message or "")
        assert (run.run_folder, run.execution_id) == (None, None)
        assert await Claims(self.database).execution_of(run.run_id) is None
        assert [row.kind for row in await self.harness.trail(run.run_id)] == ["recorded", "finished"]
        assert (await self.harness.view(schedule)).condition is Condition.ACTIVE


@pytest.fixture
async def place(postgres: PostgresServer, database: Database, tmp_path: Path, workspace: str) -> AsyncIterator[Place]:
    temporal = TemporalServer(tmp_path, port=free_port(), ui_port=None, namespace="almanac")
    await temporal.start()
    await temporal.wait_ready()
    client = await Client.connect(temporal.address, namespace="almanac", data_converter=pydantic_data_converter)
    await Workspaces(database).ensure(workspace)
    definition = PipelineDefinition(name=PIPELINE, steps=(Step(id="only", command=("true",)),))
    await Pipelines(database).save(workspace, definition, "test")
    await Pipelines(database).release(workspace, PIPELINE, "test")
    yield Place(tmp_path, database, postgres.url, temporal, Harness(client, database, ProbeExecutor(), workspace))
    await temporal.stop()


async def scheduled(place: Place) -> str:
    return await place.harness.create(executor="pipeline", payload={"pipeline": PIPELINE, "version": "current"})


def fill(storage: Path) -> list[Path]:
    """Takes what is left of the disk, its bytes and its names."""
    filler = [storage / "filler"]
    with suppress(OSError), filler[0].open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass
    with suppress(OSError):
        for number in range(100_000):
            (storage / f"filler-{number}").touch()
            filler.append(storage / f"filler-{number}")
        raise AssertionError("there is no end to this disk")
    return filler


async def test_a_disk_that_fills_up_refuses_runs_until_there_is_room_again(place: Place) -> None:
    async with place.worker("size=4m,nr_inodes=1000") as worker:
        schedule = await scheduled(place)
        assert (await place.ran(schedule, 1)).state is RunState.SUCCEEDED

        filler = fill(place.seen_by(worker))
        await place.refused(schedule, await place.ran(schedule, 2), "No space left on device")

        for file in filler:
            file.unlink()
        after = await place.ran(schedule, 3)
        assert (after.state, after.run_folder) == (RunState.SUCCEEDED, "iteration-2-sched")


async def test_a_storage_that_is_read_only_refuses_runs(place: Place) -> None:
    async with place.worker("ro"):
        schedule = await scheduled(place)
        for number in (1, 2):
            await place.refused(schedule, await place.ran(schedule, number), "Read-only file system")
