"""While the database is down, schedules go on; what they could not look up or tell is caught up with afterwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from domain import messages
from domain.dependency import Question
from domain.run import RunState
from embedded.postgres import PostgresServer
from readmodel import migrate
from readmodel.database import Database
from tests.replay.stage import stage
from tests.waiting import eventually
from tests.workflows.harness import Harness
from tests.workflows.skipping import skipping
from worker.settings import WorkerSettings

pytestmark = pytest.mark.stack


async def test_a_parent_that_can_not_look_back_still_acts(tmp_path: Path, workspace: str) -> None:
    """What its own parent drives has no pattern, so the answer to a question has to be read."""
    async with stage(tmp_path) as built:
        harness = built.harness(workspace)
        root = await harness.create()
        parent = await harness.create(cron=None, after_schedule_ids=(root,))
        child = await harness.create(lane="b")
        today = datetime.now(UTC)
        question = Question(
            dependent_id=child,
            run_id="a-run-of-the-child",
            dates=(today.date(),),
            instant=today,
            until=today + timedelta(days=1),
        )
        async with built.without_database():
            await harness.handle(parent).signal(messages.QUESTION_SIGNAL, question)
            await harness.signal_run_now(parent)

            async def acted() -> bool:
                return (await harness.view(parent)).last_run is not None

            await eventually(acted, what="the end of the parent's run")
        (run,) = await harness.final(parent, within=60)
        assert (run.state, run.reason) == (RunState.NOT_STARTED, "record_unwritable")


async def is_ahead(harness: Harness, schedule: str) -> bool:
    """Whether it waits for what is still to come: while it tries to tell something, the clock skips on without it."""
    due = (await harness.view(schedule)).next_due_at
    return due is not None and due > await harness.now()


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_hours_without_a_database_stop_no_timer_and_lose_nothing(
    tmp_path: Path, worker_settings: WorkerSettings, workspace: str
) -> None:
    """On simulated time, and for so long that most of what there is to tell waits in bundles."""
    server = PostgresServer(tmp_path)
    await server.start()
    await migrate.upgrade(server.url)
    database = Database(server.url)
    step, hours = timedelta(minutes=1), timedelta(hours=2)
    async with skipping(database, worker_settings, workspace) as harness:
        schedule = await harness.create(cron="* * * * *")
        await server.stop()
        end = await harness.now() + hours
        while await harness.now() < end:
            await harness.let_pass(5 * step)
            await eventually(partial(is_ahead, harness, schedule), within=60, what="the schedule keeping up")
        await server.start()
        await harness.let_pass(step)
        runs = await harness.final(schedule, hours // step + 1)
        dues = [run.scheduled_for for run in runs if run.scheduled_for]
        assert dues == [dues[0] + step * number for number in range(len(runs))]
        assert {run.reason for run in runs[: hours // step - 1]} == {"record_unwritable"}
        for run in (runs[0], runs[40]):
            assert [row.kind for row in await harness.trail(run.run_id)] == ["recorded", "finished"]
    await database.close()
    await server.stop()
