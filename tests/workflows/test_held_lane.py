"""A lane that is held for hours, on simulated time: what becomes of each occurrence meanwhile, and afterwards.

The lane is in doubt about a lost holder, which is the one way to be held without anybody at work: the server's clock
does not skip while somebody is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain import ids, messages
from domain.lane import Lane
from domain.messages import LaneInput
from domain.run import RunState
from readmodel.database import Database
from tests.workflows.harness import Harness
from tests.workflows.requests import LaneDesk
from tests.workflows.skipping import skipping
from worker.settings import WorkerSettings

pytestmark = pytest.mark.stack

HOURLY = "0 5-12 * * *"
BUSY = ("skipped", "busy")
OVERLAP = ("skipped", "overlap")
SUPERSEDED = ("skipped", "superseded")
FOLDED = ("skipped", "coalesced")
EXPIRED = ("skipped", "expired")
PAUSED = ("skipped", "schedule_paused")
EDITED = ("skipped", "schedule_edited")
RAN = ("succeeded", None)


@pytest.fixture(scope="module")
async def shared(database: Database, worker_settings: WorkerSettings) -> AsyncIterator[Harness]:
    async with skipping(database, worker_settings, "shared") as harness:
        yield harness


@pytest.fixture
async def harness(shared: Harness, workspace: str) -> AsyncIterator[Harness]:
    """A day's beginning, in a workspace whose lane is held until 10:31."""
    mine = replace(shared, workspace=workspace, created=[])
    await until(mine, "04:00")
    await held(mine, await mine.now() + timedelta(hours=6, minutes=31))
    yield mine
    for schedule in reversed(mine.created):
        await mine.act(schedule, messages.DELETE_UPDATE)


async def until(harness: Harness, clock: str) -> None:
    now = await harness.now()
    hour, minute = map(int, clock.split(":"))
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    await harness.let_pass((then if then > now else then + timedelta(days=1)) - now)


async def held(harness: Harness, end: datetime) -> None:
    holder = LaneDesk(harness).occurrence("lost")
    await harness.client.start_workflow(
        messages.LANE_WORKFLOW,
        LaneInput(
            workspace=harness.workspace,
            lane_key="probe:a",
            lane=Lane(holder=holder, in_doubt_until=end.astimezone(UTC)),
        ),
        id=ids.lane_workflow_id(harness.workspace, "probe:a"),
        task_queue=messages.TASK_QUEUE,
    )


async def day(harness: Harness, schedule: str, count: int) -> dict[int, tuple[str, str | None]]:
    """How the occurrence of each hour ended."""
    await until(harness, "12:30")
    runs = await harness.final(schedule, count)
    return {run.scheduled_for.hour: (run.state.value, run.reason) for run in runs if run.scheduled_for}


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("skip", [BUSY, BUSY, BUSY, BUSY, BUSY, BUSY, RAN, RAN]),
        ("queue_latest", [SUPERSEDED, SUPERSEDED, SUPERSEDED, SUPERSEDED, SUPERSEDED, RAN, RAN, RAN]),
        ("retry", [RAN, OVERLAP, OVERLAP, OVERLAP, OVERLAP, OVERLAP, RAN, RAN]),
        ("coalesce", [RAN, FOLDED, FOLDED, FOLDED, FOLDED, FOLDED, RAN, RAN]),
    ],
)
async def test_each_policy_while_the_lane_is_held_for_hours(
    harness: Harness, policy: str, ends: list[tuple[str, str | None]]
) -> None:
    schedule = await harness.create(cron=HOURLY, collision_policy=policy)
    assert await day(harness, schedule, 8) == dict(zip(range(5, 13), ends, strict=True))


async def test_an_occurrence_that_waited_as_long_as_it_is_worth_expires(harness: Harness) -> None:
    schedule = await harness.create(cron=HOURLY, collision_policy="queue_latest", max_start_delay_minutes=30)
    assert await day(harness, schedule, 8) == {hour: EXPIRED if hour <= 10 else RAN for hour in range(5, 13)}


async def test_a_start_deadline_ends_what_waits_at_its_time_of_day(harness: Harness) -> None:
    schedule = await harness.create(cron=HOURLY, collision_policy="queue_latest", start_deadline="09:15")
    ends = [SUPERSEDED, SUPERSEDED, SUPERSEDED, SUPERSEDED, EXPIRED, RAN, RAN, RAN]
    assert await day(harness, schedule, 8) == dict(zip(range(5, 13), ends, strict=True))


async def test_a_pause_drops_what_waits_and_what_passes_meanwhile_is_nothing(harness: Harness) -> None:
    schedule = await harness.create(cron=HOURLY, collision_policy="queue_latest")
    await until(harness, "05:30")
    await harness.in_state(schedule, RunState.WAITING)
    await harness.act(schedule, messages.PAUSE_UPDATE)
    await until(harness, "10:45")
    await harness.act(schedule, messages.RESUME_UPDATE)
    assert await day(harness, schedule, 3) == {5: PAUSED, 11: RAN, 12: RAN}


async def test_a_new_pattern_drops_what_waits_and_is_due_from_then_on(harness: Harness) -> None:
    schedule = await harness.create(cron=HOURLY, collision_policy="queue_latest")
    await until(harness, "05:30")
    await harness.in_state(schedule, RunState.WAITING)
    await harness.revise(schedule, cron="0 11 * * *")
    assert await day(harness, schedule, 2) == {5: EDITED, 11: RAN}


async def test_an_edit_of_notes_leaves_what_waits_where_it_is(harness: Harness) -> None:
    schedule = await harness.create(cron="0 5 * * *", collision_policy="queue_latest")
    await until(harness, "05:30")
    before = await harness.in_state(schedule, RunState.WAITING)
    await harness.revise(schedule, notes="Ask Ada.")
    assert await day(harness, schedule, 1) == {5: RAN}
    assert [run.run_id for run in await harness.runs(schedule)] == [before.run_id]


async def test_what_waits_survives_that_its_lane_is_ended_by_hand(harness: Harness) -> None:
    """Nobody does anything about it: the schedule offers it again by itself."""
    schedule = await harness.create(cron="0 5 * * *", collision_policy="queue_latest")
    await until(harness, "05:30")
    await harness.in_state(schedule, RunState.WAITING)
    await harness.client.get_workflow_handle(ids.lane_workflow_id(harness.workspace, "probe:a")).terminate("test")
    assert await day(harness, schedule, 1) == {5: RAN}


async def test_sent_to_another_lane_its_occurrences_wait_for_its_run_in_the_old_one(harness: Harness) -> None:
    schedule = await harness.create(cron=HOURLY, collision_policy="queue_latest")
    asked = await harness.run_now(schedule)
    await harness.in_state(schedule, RunState.WAITING)
    await harness.revise(schedule, payload={"lane": "b", "script": "succeed"})
    ends = [SUPERSEDED, SUPERSEDED, SUPERSEDED, SUPERSEDED, SUPERSEDED, RAN, RAN, RAN]
    assert await day(harness, schedule, 9) == dict(zip(range(5, 13), ends, strict=True))
    ran = [run for run in await harness.runs(schedule) if run.state is RunState.SUCCEEDED]
    assert (ran[0].run_id, ran[0].target) == (asked.run_id, "probe:a")
    assert {run.target for run in ran[1:]} == {"probe:b"}
    order = [run_id for run_id in harness.probe.executed if run_id.startswith(schedule)]
    assert order[0] == asked.run_id
