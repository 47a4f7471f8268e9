"""Executions that need no slot, by an executor that does as the test tells it: launched once, seen to their end."""

from __future__ import annotations

import pytest

from domain import ids, messages
from domain.messages import CancelRun
from domain.run import Run, RunState
from tests.waiting import eventually
from tests.workflows.harness import Harness
from tests.workflows.probe import DetachedProbe

pytestmark = pytest.mark.stack


async def cancel(harness: Harness, run: Run) -> None:
    handle = harness.client.get_workflow_handle(ids.run_workflow_id(run.workspace, run.run_id))
    await handle.signal(messages.CANCEL_RUN_SIGNAL, CancelRun(by="somebody"))


async def running(harness: Harness, probe: DetachedProbe, schedule: str) -> Run:
    """Its run, once it is recorded as running and launched."""
    run = await harness.in_state(schedule, RunState.RUNNING)

    async def look() -> bool:
        return run.run_id in probe.launched

    await eventually(look, what="its launch")
    return run


async def test_it_holds_its_lane_until_it_has_ended(harness: Harness, detached_probe: DetachedProbe) -> None:
    schedule = await harness.create(executor="detached_probe")
    other = await harness.create()
    await harness.run_now(schedule)
    run = await running(harness, detached_probe, schedule)
    await harness.run_now(other)
    await harness.in_state(other, RunState.WAITING)
    detached_probe.end(run.run_id, RunState.FAILED, "execution_failed")
    (ended,) = await harness.final(schedule)
    assert (ended.state, ended.reason) == (RunState.FAILED, "execution_failed")
    (after,) = await harness.final(other)
    assert after.started_at is not None
    assert ended.ended_at is not None
    assert after.started_at >= ended.ended_at
    view = await harness.view(schedule)
    assert view.last_run is not None
    assert view.last_run.state is RunState.FAILED


async def test_its_end_is_its_own_even_when_it_is_cancelled(harness: Harness, detached_probe: DetachedProbe) -> None:
    """To cancel is to ask; what comes of it, the execution says."""
    schedule = await harness.create(executor="detached_probe")
    await harness.run_now(schedule)
    run = await running(harness, detached_probe, schedule)
    await cancel(harness, run)

    async def asked() -> bool:
        return run.run_id in detached_probe.cancelled

    await eventually(asked, what="its executor being asked")
    detached_probe.end(run.run_id, RunState.SUCCEEDED)
    (ended,) = await harness.final(schedule)
    assert ended.state is RunState.SUCCEEDED


async def test_what_is_not_certain_to_have_begun_is_unknown_and_keeps_the_lane_until_the_truth(
    harness: Harness, detached_probe: DetachedProbe
) -> None:
    schedule = await harness.create(executor="detached_probe", script="lost", lateness_seconds=0)
    other = await harness.create()
    await harness.run_now(schedule)
    (unknown,) = await harness.final(schedule)
    assert (unknown.state, unknown.reason) == (RunState.UNKNOWN, "start_unconfirmed")
    assert detached_probe.tried.count(unknown.run_id) > 1
    blocked = (await harness.view(schedule)).blocked
    assert blocked is not None
    assert blocked.reason == "start_unconfirmed"
    await harness.run_now(other)
    await harness.in_state(other, RunState.WAITING)
    detached_probe.begin(unknown.run_id)
    detached_probe.end(unknown.run_id)
    run = await harness.in_state(schedule, RunState.SUCCEEDED)
    assert [row.kind for row in await harness.trail(run.run_id)][-2:] == ["finished", "updated_after_unknown"]
    (after,) = await harness.final(other)
    assert after.state is RunState.SUCCEEDED
