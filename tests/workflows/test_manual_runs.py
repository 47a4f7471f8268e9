"""Manual runs without the API that asked for them: their lane and their own workflow tell all there is to tell."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from activities.post import request_lane
from domain import ids, manual_run
from domain.manual_run import ManualRun
from domain.messages import LaneRequest
from domain.run import Run, RunState
from tests.workflows.harness import Harness

pytestmark = pytest.mark.stack

LANE = "probe:a"


async def ask(harness: Harness, script: str = "succeed", key: str = "k") -> Run:
    """What the API sends to the lane, for the executor of the tests."""
    request = manual_run.request(
        harness.workspace,
        "probe",
        ManualRun(),
        target=LANE,
        key=key,
        by="test",
        heartbeat_seconds=1,
        now=datetime.now(UTC),
    )
    assert request.recorded is not None
    run = request.entry.run.model_copy(update={"executor": "probe"})
    launch = request.entry.launch.model_copy(update={"payload": {"lane": "a", "script": script}})
    entry = request.entry.model_copy(update={"run": run, "launch": launch})
    recorded = request.recorded.model_copy(
        update={"run": request.recorded.run.model_copy(update={"executor": "probe"})}
    )
    await request_lane(harness.client, harness.workspace, LANE, LaneRequest(entry=entry, recorded=recorded))
    return run


async def test_the_whole_trail_is_told_without_a_schedule(harness: Harness) -> None:
    run = await ask(harness)

    (ended,) = await harness.final(None)
    assert (ended.run_id, ended.state, ended.run_folder) == (run.run_id, RunState.SUCCEEDED, "iteration-0")
    kinds = [row.kind for row in await harness.trail(run.run_id)]
    assert kinds == ["recorded", "claimed", "started", "finished"]


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
    kinds = [row.kind for row in await harness.trail(second.run_id)]
    assert kinds == ["recorded", "lane_waiting", "lane_granted", "claimed", "started", "finished"]
