"""A simulated year of a New York schedule over both daylight-saving changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.run import Origin, RunState
from readmodel.database import Database
from tests.workflows.skipping import skipping
from worker.settings import WorkerSettings

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_a_year_in_new_york_runs_each_local_day_once(
    database: Database, worker_settings: WorkerSettings, workspace: str
) -> None:
    async with skipping(database, worker_settings, workspace) as harness:
        schedule = await harness.create(cron="30 2 * * *", timezone="America/New_York")
        began = await harness.now()
        await harness.let_pass(timedelta(days=366))
        runs = await harness.final(schedule, 365, within=60)
        days = [run.nominal[0].date() for run in runs]
        assert days == [days[0] + timedelta(days=n) for n in range(len(runs))]
        assert {(run.origin, run.state) for run in runs} == {(Origin.CRON, RunState.SUCCEEDED)}
        assert harness.probe.executed == [run.run_id for run in runs]
        shifted = [
            run for run in runs if run.nominal[0].hour == 2 and run.scheduled_for and run.scheduled_for.minute == 0
        ]
        assert len(shifted) == 1
        assert shifted[0].scheduled_for is not None
        assert shifted[0].scheduled_for > began
