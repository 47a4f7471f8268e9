"""Occurrences and their folders, over days that pass in seconds: each has its own, and keeps it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from domain.run import Run, RunState
from domain.schedule import CollisionPolicy
from evidence import documents, index
from evidence.book import SLOT, RunFolder
from readmodel.database import Database
from tests.workflows.harness import Harness
from tests.workflows.skipping import skipping
from worker.settings import WorkerSettings

pytestmark = pytest.mark.stack


def runs_of(settings: WorkerSettings, workspace: str) -> Path:
    return settings.storage / workspace / "probe" / "runs"


def family(run: Run) -> str | None:
    folder = RunFolder.parse(run.run_folder or "")
    return folder and folder.family


async def bound(harness: Harness, run: Run) -> str:
    """The folder that the trail has from the claim on."""
    (claimed,) = [row for row in await harness.trail(run.run_id) if row.kind == "claimed"]
    return str(claimed.data["run_folder"])


async def test_occurrences_have_folders_of_their_own_and_the_slot_is_left_alone(
    database: Database, worker_settings: WorkerSettings, workspace: str
) -> None:
    async with skipping(database, worker_settings, workspace) as harness:
        schedule = await harness.create(cron="0 6 * * *")
        await harness.let_pass(timedelta(days=3))
        ran = await harness.final(schedule, 3)

        folders = runs_of(worker_settings, workspace)
        names = {path.name for path in folders.iterdir() if RunFolder.parse(path.name)}
        assert names == {run.run_folder for run in ran}
        assert len(names) == len(ran)
        assert {family(run) for run in ran} == {"sched"}
        assert SLOT not in names
        for run in ran:
            assert await bound(harness, run) == run.run_folder
            described = documents.read_metadata(folders / str(run.run_folder))
            assert described is not None
            assert described.status is RunState.SUCCEEDED
            identity = described.identity
            assert (identity.run_kind, identity.run_id) == ("schedule", run.run_id)
            assert (identity.scheduled_for, identity.execution_id) == (run.scheduled_for, run.execution_id)
        noted = {entry.run_id: entry.folder for entry in index.read(folders).runs}
        assert noted == {run.run_id: run.run_folder for run in ran}


async def test_schedules_of_one_target_that_are_due_at_once_share_no_folder(
    database: Database, worker_settings: WorkerSettings, workspace: str
) -> None:
    async with skipping(database, worker_settings, workspace) as harness:
        due = {"cron": "0 6 * * *", "collision_policy": CollisionPolicy.QUEUE_LATEST}
        schedules = [await harness.create(**due) for _ in range(3)]
        await harness.let_pass(timedelta(days=1))
        ran = [run for schedule in schedules for run in await harness.final(schedule)]

        assert {run.state for run in ran} == {RunState.SUCCEEDED}
        assert len({run.scheduled_for for run in ran}) == 1
        assert len({run.run_folder for run in ran}) == 3
        assert {family(run) for run in ran} == {"sched"}
