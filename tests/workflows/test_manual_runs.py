"""Manual runs without the API that asked for them: their lane and their own workflow tell all there is to tell."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.service import RPCError

from domain import ids
from domain.run import Run, RunState
from tests.replay.stage import stage
from tests.waiting import eventually
from tests.workflows.harness import Harness
from tests.workflows.manual import LANE, ask

pytestmark = pytest.mark.stack


async def told(harness: Harness, run: Run, kinds: list[str]) -> None:
    """The lane and the run's own workflow tell what is theirs, in no order among each other."""

    async def look() -> bool:
        return [row.kind for row in await harness.trail(run.run_id)] == kinds

    await eventually(look, what=f"the trail of {run.run_id} to be {kinds}")


async def test_the_whole_trail_is_told_without_a_schedule(harness: Harness) -> None:
    run = await ask(harness)

    (ended,) = await harness.final(None)
    assert (ended.run_id, ended.state, ended.run_folder) == (run.run_id, RunState.SUCCEEDED, "iteration-0")
    await told(harness, run, ["recorded", "claimed", "started", "finished"])


async def test_a_request_that_comes_twice_runs_once(harness: Harness) -> None:
    run = await ask(harness, script="hold")
    await harness.in_state(None, RunState.RUNNING)
    await ask(harness, script="hold")
    harness.probe.release(run.run_id)

    (ended,) = await harness.final(None)
    assert ended.state is RunState.SUCCEEDED
    assert harness.probe.executed.count(run.run_id) == 1


async def test_one_lost_from_outside_is_told_and_frees_the_lane_after_its_fence(harness: Harness) -> None:
    lost = await ask(harness, script="hold")
    await harness.in_state(None, RunState.RUNNING)
    await ask(harness, key="next")
    await harness.in_state(None, RunState.WAITING)

    await harness.client.get_workflow_handle(ids.run_workflow_id(harness.workspace, lost.run_id)).terminate("as told")

    first, second = await harness.final(None, 2)
    assert (first.run_id, first.state, first.reason) == (lost.run_id, RunState.UNKNOWN, "instance_lost")
    assert second.state is RunState.SUCCEEDED
    await told(harness, second, ["recorded", "lane_waiting", "lane_granted", "claimed", "started", "finished"])


async def test_a_run_that_goes_on_keeps_its_slot_when_its_lane_was_ended_by_hand(harness: Harness) -> None:
    going_on = await ask(harness, script="hold")
    await harness.in_state(None, RunState.RUNNING)
    await harness.client.get_workflow_handle(ids.lane_workflow_id(harness.workspace, LANE)).terminate("as told")

    next_one = await ask(harness, key="next")

    async def refused() -> Run | None:
        return next((run for run in await harness.runs(None) if run.run_id == next_one.run_id and run.is_final), None)

    ended = await eventually(refused, what="the end of the second")
    assert (ended.state, ended.reason) == (RunState.NOT_STARTED, "start_refused")
    assert going_on.run_id in (ended.message or "")
    harness.probe.release(going_on.run_id)
    first, _ = await harness.final(None, 2)
    assert (first.run_id, first.state, first.run_folder) == (going_on.run_id, RunState.SUCCEEDED, "iteration-0")
    await ask(harness, key="after")
    assert (await harness.final(None, 3))[-1].state is RunState.SUCCEEDED


async def test_what_the_database_could_not_hear_is_told_once_it_is_back(tmp_path: Path, workspace: str) -> None:
    async with stage(tmp_path) as built:
        harness = built.harness(workspace)
        async with built.without_database():
            run = await ask(harness)
            own = harness.client.get_workflow_handle(ids.run_workflow_id(workspace, run.run_id), result_type=Run)

            async def decided() -> bool:
                with suppress(RPCError):
                    return bool((await own.query("run", result_type=Run)).is_final)
                return False

            await eventually(decided, what="the end of the run")
        (ended,) = await harness.final(None, within=90)
        assert (ended.state, ended.reason) == (RunState.NOT_STARTED, "record_unwritable")
        await told(harness, run, ["recorded", "finished"])
