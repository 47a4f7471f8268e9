"""Entities that continue as new in the middle of everything: what is said to them meanwhile is heard once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from api.temporal import ScheduleWorkflows
from domain import ids
from domain.messages import ReviseSchedule
from domain.run import Run, RunState
from domain.schedule import CollisionPolicy
from tests.replay.stage import stage
from tests.waiting import eventually
from tests.workflows.harness import Harness
from tests.workflows.requests import LaneDesk

pytestmark = pytest.mark.stack

SHORT = 40


async def renewals(harness: Harness, schedule: str) -> int:
    query = f'WorkflowId = "{harness.handle(schedule).id}"'
    return len([run async for run in harness.client.list_workflows(query)]) - 1


@pytest.mark.slow
async def test_no_signal_and_no_update_is_lost_or_heard_twice(harness: Harness) -> None:
    """200 requests by signal and 20 edits by update, all at once with continue-as-new every 40 events."""
    harness.history_limit = SHORT
    schedule = await harness.create()
    keys = [f"{number}" for number in range(200)]
    edits = 20

    async def ask() -> None:
        for first in range(0, len(keys), 10):
            await asyncio.gather(*(harness.signal_run_now(schedule, key) for key in keys[first : first + 10]))

    async def edit() -> None:
        """As the API does it, which sends again what was broken off by a continue-as-new."""
        definition = (await harness.view(schedule)).definition
        for revision in range(1, edits + 1):
            edited = definition.model_copy(update={"notes": f"Edit {revision}."})
            command = ReviseSchedule(definition=edited, target="probe:a", expected_revision=revision, by="test")
            answer = await ScheduleWorkflows(harness.client).revise(harness.workspace, schedule, command)
            assert answer.schedule.revision == revision + 1

    await asyncio.gather(ask(), edit())
    runs = await harness.final(schedule, len(keys), within=60)
    assert sorted(run.run_id for run in runs) == sorted(ids.run_now_id(schedule, key) for key in keys)
    assert {(run.state, run.reason) for run in runs} == {(RunState.SUCCEEDED, None), (RunState.SKIPPED, "overlap")}
    succeeded = {run.run_id for run in runs if run.state is RunState.SUCCEEDED}
    assert sorted(run_id for run_id in harness.probe.executed if run_id.startswith(schedule)) == sorted(succeeded)
    assert (await harness.view(schedule)).definition.notes == f"Edit {edits}."
    assert await renewals(harness, schedule) >= 2


async def test_what_a_repeated_request_made_is_remembered_across_it(harness: Harness) -> None:
    harness.history_limit = SHORT
    schedule = await harness.create()
    asked = await harness.run_now(schedule, "first")
    await harness.final(schedule)
    number = 0
    while await renewals(harness, schedule) == 0:
        number += 1
        await harness.run_now(schedule, f"{number}")
        await harness.final(schedule, number + 1)
    assert (await harness.run_now(schedule, "first")).run_id == asked.run_id
    assert len(await harness.final(schedule, number + 1)) == number + 1
    assert harness.probe.executed.count(asked.run_id) == 1


@pytest.mark.slow
async def test_what_the_database_has_yet_to_hear_is_carried_over(tmp_path: Path, workspace: str) -> None:
    async with stage(tmp_path) as built:
        harness = built.harness(workspace, SHORT)
        schedule = await harness.create(script="refuse:workspace_inactive")
        number = 0
        async with built.without_database():
            while await renewals(harness, schedule) < 2:
                await harness.signal_run_now(schedule, f"{number}")
                number += 1
                await eventually(lambda: idle(harness, schedule), what="no open run")
        runs = await harness.final(schedule, number, within=60)
        assert sorted(run.run_id for run in runs) == sorted(ids.run_now_id(schedule, f"{n}") for n in range(number))
        for run in runs:
            kinds = [row.kind for row in await harness.trail(run.run_id)]
            assert [kind for kind in kinds if not kind.startswith("lane_")] == ["recorded", "finished"]


async def idle(harness: Harness, schedule: str) -> bool:
    return not (await harness.view(schedule)).open_runs


async def test_a_held_lane_continues_as_new_and_finds_its_holder_again(harness: Harness) -> None:
    desk = LaneDesk(harness, history_limit=SHORT)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await harness.in_state(held.schedule_id, RunState.RUNNING)
    asked: list[Run] = []
    while await desk.renewals() < 2:
        asked.append(await desk.request(desk.occurrence("waiting", len(asked))))
    lane = await desk.look()
    assert lane.holder is not None
    assert lane.holder.run.run_id == held.run_id
    assert [entry.run.run_id for entry in lane.waiting] == [asked[-1].run_id]
    harness.probe.release(held.run_id)
    await desk.free()
    ends = {run.run_id: (run.state, run.reason) for run in await harness.final(asked[0].schedule_id, len(asked))}
    assert ends.pop(asked[-1].run_id) == (RunState.SUCCEEDED, None)
    assert set(ends.values()) == {(RunState.SKIPPED, "superseded")}
    assert (await harness.final(held.schedule_id))[0].state is RunState.SUCCEEDED
    for run in (held, asked[-1]):
        assert harness.probe.executed.count(run.run_id) == 1


async def test_a_holder_lost_after_its_lane_continued_as_new_ends_unknown(harness: Harness) -> None:
    desk = LaneDesk(harness, history_limit=SHORT)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await harness.in_state(held.schedule_id, RunState.RUNNING)
    asked: list[Run] = []
    while await desk.renewals() < 1:
        asked.append(await desk.request(desk.occurrence("waiting", len(asked))))
    await harness.client.get_workflow_handle(ids.run_workflow_id(harness.workspace, held.run_id)).terminate("test")
    (lost,) = await harness.final(held.schedule_id)
    assert (lost.state, lost.reason) == (RunState.UNKNOWN, "instance_lost")
    assert (await desk.look()).in_doubt_until is not None
    runs = await harness.final(asked[0].schedule_id, len(asked))
    assert [run.run_id for run in runs if run.state is RunState.SUCCEEDED] == [asked[-1].run_id]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_busy_lane_meets_a_thousand_occurrences_with_a_short_history(harness: Harness) -> None:
    """Of four schedules at once, one of each policy; each occurrence has one end, and what waited runs once."""
    desk = LaneDesk(harness, history_limit=200)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await harness.in_state(held.schedule_id, RunState.RUNNING)
    each = 250
    lengths: list[int] = []
    for number in range(each):
        entries = [desk.occurrence(policy, number, policy=policy) for policy in CollisionPolicy]
        await asyncio.gather(*(desk.request(entry) for entry in entries))
        lengths.append((await desk.handle.describe()).history_length)
    lane = await desk.look()
    assert len(lane.waiting) == 3
    harness.probe.release(held.run_id)
    await desk.free()
    ended = {
        policy: await harness.final(f"{policy}-{harness.workspace}", each, within=60) for policy in CollisionPolicy
    }
    reasons = {policy: Counter(run.reason for run in runs) for policy, runs in ended.items()}
    assert reasons == {
        CollisionPolicy.SKIP: {"busy": each},
        CollisionPolicy.QUEUE_LATEST: {"superseded": each - 1, None: 1},
        CollisionPolicy.RETRY: {"overlap": each - 1, None: 1},
        CollisionPolicy.COALESCE: {"coalesced": each - 1, None: 1},
    }
    for runs in ended.values():
        assert [harness.probe.executed.count(run.run_id) for run in runs if run.reason is None] in ([1], [])
    assert await desk.renewals() >= 2
    assert max(lengths) < each * len(CollisionPolicy)


async def test_a_lane_in_doubt_continues_as_new_and_goes_on_once_the_doubt_is_over(harness: Harness) -> None:
    desk = LaneDesk(harness, history_limit=SHORT)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await harness.in_state(held.schedule_id, RunState.RUNNING)
    await harness.client.get_workflow_handle(ids.run_workflow_id(harness.workspace, held.run_id)).terminate("test")
    await harness.in_state(held.schedule_id, RunState.UNKNOWN)
    asked: list[Run] = []
    while await desk.renewals() < 1:
        asked.append(await desk.request(desk.occurrence("waiting", len(asked))))
    runs = await harness.final(asked[0].schedule_id, len(asked))
    succeeded = [run for run in runs if run.state is RunState.SUCCEEDED]
    assert asked[-1].run_id in [run.run_id for run in succeeded]
    assert [harness.probe.executed.count(run.run_id) for run in succeeded] == [1] * len(succeeded)
    assert {run.reason for run in runs} <= {None, "superseded"}
