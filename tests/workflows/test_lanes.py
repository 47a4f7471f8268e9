"""Lanes for real: whose turn it is, what survives, and what a lost holder leaves behind."""

from __future__ import annotations

import pytest

from domain import ids, messages
from domain.lane import Lane
from domain.run import RunState
from tests.waiting import eventually
from tests.workflows.harness import Harness

pytestmark = pytest.mark.stack


async def lane_of(harness: Harness, key: str = "probe:a") -> Lane:
    handle = harness.client.get_workflow_handle(ids.lane_workflow_id(harness.workspace, key))
    lane: Lane = await handle.query("lane", result_type=Lane)
    return lane


async def test_two_schedules_of_one_target_take_turns(harness: Harness) -> None:
    first, second = await harness.create(script="hold"), await harness.create()
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    await harness.run_now(second)
    waiting = await harness.in_state(second, RunState.WAITING)
    assert waiting.reason == "lane"
    harness.probe.release(held.run_id)
    (after,) = await harness.final(second)
    (before,) = await harness.final(first)
    assert before.ended_at is not None
    assert after.started_at is not None
    assert before.ended_at <= after.started_at
    kinds = [row.kind for row in await harness.trail(after.run_id)]
    assert kinds == ["recorded", "lane_waiting", "lane_granted", "claimed", "started", "finished"]


async def test_schedules_of_different_targets_do_not_wait_for_each_other(harness: Harness) -> None:
    first, second = await harness.create(script="hold", lane="a"), await harness.create(lane="b")
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    await harness.run_now(second)
    await harness.final(second)
    harness.probe.release(held.run_id)
    await harness.final(first)


async def test_a_holder_ended_from_outside_ends_unknown_blocks_and_frees_the_lane_after_its_fence(
    harness: Harness,
) -> None:
    first, second = await harness.create(script="hold"), await harness.create()
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    await harness.run_now(second)
    await harness.in_state(second, RunState.WAITING)
    run = harness.client.get_workflow_handle(ids.run_workflow_id(harness.workspace, held.run_id))
    await run.terminate("as a test does")
    (lost,) = await harness.final(first)
    assert (lost.state, lost.reason) == (RunState.UNKNOWN, "instance_lost")
    assert (await harness.view(first)).blocked is not None
    assert (await lane_of(harness)).in_doubt_until is not None
    (after,) = await harness.final(second)
    assert after.state is RunState.SUCCEEDED


async def test_unblocking_gives_a_lane_in_doubt_to_the_next(harness: Harness) -> None:
    first, second = await harness.create(script="hold"), await harness.create()
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    await harness.run_now(second)
    await harness.in_state(second, RunState.WAITING)
    await harness.client.get_workflow_handle(ids.run_workflow_id(harness.workspace, held.run_id)).terminate("test")
    await harness.final(first)
    await harness.act(first, messages.UNBLOCK_UPDATE)
    await harness.final(second, within=3)


async def test_a_lane_ended_from_outside_is_made_anew_with_whom_it_had(harness: Harness) -> None:
    """What runs holds it again, what waits waits again, and each is carried out once."""
    first, second, third = await harness.create(script="hold"), await harness.create(), await harness.create()
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    for schedule in (second, third):
        await harness.run_now(schedule)
        await harness.in_state(schedule, RunState.WAITING)
    lost = harness.client.get_workflow_handle(ids.lane_workflow_id(harness.workspace, "probe:a"))
    await lost.terminate("as a test does")
    await harness.act(first, messages.REPLAN_UPDATE)
    await eventually(lambda: _is_held(harness, held.run_id), what="held again")
    for schedule in (second, third):
        await harness.act(schedule, messages.REPLAN_UPDATE)
    await eventually(lambda: _number_waiting(harness, 2), what="waiting again")
    assert [run.state for run in await harness.runs(second)] == [RunState.WAITING]
    harness.probe.release(held.run_id)
    runs = [run for schedule in (first, second, third) for run in await harness.final(schedule)]
    assert [run.state for run in runs] == [RunState.SUCCEEDED] * 3
    assert [harness.probe.executed.count(run.run_id) for run in runs] == [1, 1, 1]


async def _is_held(harness: Harness, run_id: str) -> bool:
    holder = (await lane_of(harness)).holder
    return holder is not None and holder.run.run_id == run_id


async def _number_waiting(harness: Harness, number: int) -> bool:
    return len((await lane_of(harness)).waiting) == number


async def test_a_waiting_run_ends_with_its_schedule_s_pause(harness: Harness) -> None:
    first, second = await harness.create(script="hold"), await harness.create()
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    await harness.run_now(second)
    await harness.in_state(second, RunState.WAITING)
    await harness.act(second, messages.PAUSE_UPDATE)
    (dropped,) = await harness.final(second)
    assert (dropped.state, dropped.reason) == (RunState.SKIPPED, "schedule_paused")
    harness.probe.release(held.run_id)
    await harness.final(first)


async def test_an_edit_to_another_lane_does_not_let_a_schedule_overlap_itself(harness: Harness) -> None:
    schedule = await harness.create(script="hold", lane="a", collision_policy="queue_latest")
    held = await harness.run_now(schedule, "a")
    await harness.in_state(schedule, RunState.RUNNING)
    await harness.revise(schedule, payload={"lane": "b", "script": "succeed"})
    await harness.signal_run_now(schedule, "b")
    await harness.in_state(schedule, RunState.SKIPPED)
    harness.probe.release(held.run_id)
    await harness.final(schedule, 2)
    await harness.run_now(schedule, "c")
    runs = await harness.final(schedule, 3)
    assert {run.target for run in runs if run.state is RunState.SUCCEEDED} == {"probe:a", "probe:b"}


async def test_parallel_admission_runs_beside_others_but_not_beside_itself(harness: Harness) -> None:
    first = await harness.create(script="hold")
    second = await harness.create(script="hold", admission="parallel", acknowledged_risk=1)
    held = [await harness.run_now(schedule) for schedule in (first, second)]
    for schedule in (first, second):
        await harness.in_state(schedule, RunState.RUNNING)
    acknowledgement = (await harness.view(second)).acknowledgement
    assert acknowledgement is not None
    assert (acknowledgement.by, acknowledgement.text_version) == ("test", 1)
    for run in held:
        harness.probe.release(run.run_id)
    for schedule in (first, second):
        await harness.final(schedule)


async def test_deleting_ends_the_workflow_once_its_run_has_ended(harness: Harness) -> None:
    schedule = await harness.create(script="hold")
    held = await harness.run_now(schedule)
    await harness.in_state(schedule, RunState.RUNNING)
    await harness.act(schedule, messages.DELETE_UPDATE)
    harness.probe.release(held.run_id)

    async def closed() -> bool:
        return (await harness.handle(schedule).describe()).close_time is not None

    await eventually(closed, what="closed")
    (run,) = await harness.runs(schedule)
    assert run.state is RunState.SUCCEEDED
