"""Dependent schedules for real: which parent occurrence releases, which never does, and what ends a wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain import messages
from domain.run import RunState, WaitStatus
from readmodel.database import Database
from tests.workflows.harness import Harness
from tests.workflows.skipping import skipping
from worker.settings import WorkerSettings

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
async def shared(database: Database, worker_settings: WorkerSettings) -> AsyncIterator[Harness]:
    """One server whose clock skips, for all tests here: it only ever goes on."""
    async with skipping(database, worker_settings, "shared") as harness:
        yield harness


@pytest.fixture
async def harness(shared: Harness, workspace: str) -> AsyncIterator[Harness]:
    """Each test in a workspace of its own, begun at four in the morning, so that a first day is a whole one; what it
    leaves behind fires no more."""
    mine = replace(shared, workspace=workspace, created=[])
    await mine.let_pass(await _until(mine, "04:00"))
    yield mine
    for schedule in reversed(mine.created):
        await mine.act(schedule, messages.DELETE_UPDATE)


async def test_days_of_a_pair_release_each_day_s_own_parent(harness: Harness) -> None:
    parent = await harness.create(cron="0 6 * * *", lane="close")
    child = await harness.create(cron="0 7 * * *", lane="pulse", after_schedule_ids=(parent,))
    await harness.let_pass(timedelta(days=4))
    children = await harness.final(child, 4)
    parents = {run.scheduled_for: run for run in await harness.final(parent, 4)}
    for run in children:
        assert run.state is RunState.SUCCEEDED
        (waited,) = run.waits_for
        assert waited.occurrence is not None
        assert waited.run_id == parents[waited.occurrence].run_id
        assert run.scheduled_for is not None
        assert waited.occurrence.date() == run.scheduled_for.date()
    kinds = [row.kind for row in await harness.trail(children[0].run_id)]
    assert kinds[0] == "recorded"
    assert "released" in kinds


async def test_a_dependent_waits_visibly_for_a_parent_still_to_come_and_starts_after_its_end_and_delay(
    harness: Harness,
) -> None:
    parent = await harness.create(cron="0 9 * * *", lane="close")
    child = await harness.create(cron="0 7 * * *", lane="pulse", after_schedule_ids=(parent,), after_delay_minutes=30)
    await harness.let_pass(await _until(harness, "07:05"))
    waiting = await harness.in_state(child, RunState.WAITING)
    assert waiting.reason == "dependency"
    assert [wait.status for wait in waiting.waits_for] == [WaitStatus.NOT_DUE]
    await harness.let_pass(await _until(harness, "09:10"))
    assert (await harness.in_state(child, RunState.WAITING)).reason == "delay"
    await harness.let_pass(timedelta(hours=1))
    (run,) = await harness.final(child)
    assert run.state is RunState.SUCCEEDED
    kinds = [row.kind for row in await harness.trail(run.run_id)]
    assert kinds[-5:] == ["delayed", "released", "claimed", "started", "finished"]


@pytest.mark.parametrize(
    ("terminal", "state", "reason"),
    [("completed", RunState.SKIPPED, "parent_failed"), ("any_terminal", RunState.SUCCEEDED, None)],
)
async def test_a_failed_parent_follows_the_terminal_policy(
    harness: Harness,
    terminal: str,
    state: RunState,
    reason: str | None,
) -> None:
    parent = await harness.create(cron="0 6 * * *", lane="close", script="fail")
    child = await harness.create(
        cron="0 7 * * *", lane="pulse", after_schedule_ids=(parent,), after_terminal_status=terminal
    )
    await harness.let_pass(timedelta(days=1))
    (run,) = await harness.final(child)
    assert (run.state, run.reason) == (state, reason)
    if reason:
        assert run.message is not None
        assert parent in run.message


async def test_a_parent_without_an_occurrence_that_date_is_absent_at_once(harness: Harness) -> None:
    parent = await harness.create(cron="0 6 1 1 *", lane="close")
    child = await harness.create(cron="0 7 2 * *", lane="pulse", after_schedule_ids=(parent,))
    await harness.let_pass(timedelta(days=32))
    (run,) = await harness.final(child)
    assert (run.state, run.reason) == (RunState.SKIPPED, "parent_absent")


async def test_a_deadline_ends_the_wait_and_the_parent_s_late_end_releases_nothing(harness: Harness) -> None:
    parent = await harness.create(cron="0 9 * * *", lane="close")
    child = await harness.create(
        cron="0 7 * * *", lane="pulse", after_schedule_ids=(parent,), dependency_deadline="08:00"
    )
    await harness.let_pass(await _until(harness, "10:00"))
    (run,) = await harness.final(child)
    assert (run.state, run.reason) == (RunState.SKIPPED, "dependency_deadline")
    assert (await harness.final(parent))[0].state is RunState.SUCCEEDED
    assert run.run_id not in harness.probe.executed


async def test_a_parent_s_run_now_releases_nothing(harness: Harness) -> None:
    parent = await harness.create(cron="0 0 1 1 *", lane="close")
    child = await harness.create(cron=None, lane="pulse", after_schedule_ids=(parent,))
    await harness.run_now(parent)
    await harness.final(parent)
    assert await harness.runs(child) == []


async def test_a_driven_schedule_has_an_occurrence_for_each_of_its_parent(harness: Harness) -> None:
    parent = await harness.create(cron="0 6,18 * * *", lane="close")
    child = await harness.create(cron=None, lane="pulse", after_schedule_ids=(parent,))
    await harness.let_pass(timedelta(days=2))
    parents = await harness.final(parent, 4)
    children = await harness.final(child, 4)
    assert [run.scheduled_for for run in children] == [run.scheduled_for for run in parents]
    assert {run.state for run in children} == {RunState.SUCCEEDED}


async def test_a_schedule_driven_by_several_has_one_a_date_after_the_last_of_each(harness: Harness) -> None:
    early = await harness.create(cron="0 6,8 * * *", lane="a")
    late = await harness.create(cron="0 10 * * *", lane="b")
    child = await harness.create(cron=None, lane="pulse", after_schedule_ids=(early, late))
    await harness.let_pass(timedelta(days=3))
    children = await harness.final(child, 3)
    whole = children[1]
    assert whole.scheduled_for is not None
    assert whole.scheduled_for.hour == 10
    hours = {wait.schedule_id: wait.occurrence.hour for wait in whole.waits_for if wait.occurrence}
    assert hours == {early: 8, late: 10}


async def test_pausing_a_dependent_ends_its_wait(harness: Harness) -> None:
    parent = await harness.create(cron="0 9 * * *", lane="close")
    child = await harness.create(cron="0 7 * * *", lane="pulse", after_schedule_ids=(parent,))
    await harness.let_pass(await _until(harness, "07:05"))
    await harness.in_state(child, RunState.WAITING)
    await harness.act(child, messages.PAUSE_UPDATE)
    (run,) = await harness.final(child)
    assert (run.state, run.reason) == (RunState.SKIPPED, "schedule_paused")


async def test_a_paused_parent_s_occurrence_that_passes_is_absent(harness: Harness) -> None:
    parent = await harness.create(cron="0 9 * * *", lane="close")
    child = await harness.create(cron="0 7 * * *", lane="pulse", after_schedule_ids=(parent,))
    await harness.let_pass(await _until(harness, "06:00"))
    await harness.act(parent, messages.PAUSE_UPDATE)
    await harness.let_pass(await _until(harness, "08:00"))
    assert (await harness.in_state(child, RunState.WAITING)).waits_for[0].status is WaitStatus.NOT_DUE
    await harness.let_pass(await _until(harness, "09:05"))
    (run,) = await harness.final(child)
    assert (run.state, run.reason) == (RunState.SKIPPED, "parent_absent")


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_weeks_over_both_changes_of_the_clock_with_parents_in_other_zones(
    database: Database, worker_settings: WorkerSettings, workspace: str
) -> None:
    """Berlin, New York and Tokyo change at different dates or never; each day's dependent has each day's parents."""
    async with skipping(database, worker_settings, workspace) as harness:
        for month, day in ((3, 7), (10, 24)):
            began = await harness.now()
            year = began.year if (began.month, began.day) < (month, day) else began.year + 1
            await harness.let_pass(datetime(year, month, day, 12, tzinfo=UTC) - began)
            tokyo = await harness.create(cron="30 7 * * *", timezone="Asia/Tokyo", lane="a")
            berlin = await harness.create(cron="30 2 * * *", timezone="Europe/Berlin", lane="b")
            york = await harness.create(
                cron="30 2 * * *", timezone="America/New_York", lane="c", after_schedule_ids=(tokyo, berlin)
            )
            await harness.let_pass(timedelta(days=23))
            for schedule in (york, berlin, tokyo):
                await harness.act(schedule, messages.DELETE_UPDATE)
            runs = (await harness.final(york, 23, within=60))[2:]
            days = [run.nominal[0].date() for run in runs]
            assert days == [days[0] + timedelta(days=n) for n in range(len(runs))]
            assert {run.state for run in runs} == {RunState.SUCCEEDED}
            for run in runs:
                assert [parent.nominal[0].date() for parent in run.waits_for] == [run.nominal[0].date()] * 2
            offsets = {run.nominal[0].replace(tzinfo=UTC) - run.scheduled_for for run in runs if run.scheduled_for}
            assert len(offsets) >= 2


async def _until(harness: Harness, clock: str) -> timedelta:
    """Until that time of day in UTC: today's, or tomorrow's once it has passed."""
    now = await harness.now()
    hour, minute = (int(part) for part in clock.split(":"))
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (then if then > now else then + timedelta(days=1)) - now
