"""Run now: one meaning by update and by signal, and one run however often it is asked for."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from domain import messages
from domain.authority import SYSTEM
from domain.run import Origin, RunState
from tests.waiting import eventually
from tests.workflows.harness import Harness

pytestmark = pytest.mark.stack


async def refusal(harness: Harness, schedule_id: str, key: str, by: str = "test") -> str | None:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await harness.run_now(schedule_id, key, by)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type


async def test_a_run_goes_from_request_to_its_end_and_leaves_a_trail(harness: Harness) -> None:
    schedule = await harness.create()
    asked = await harness.run_now(schedule)
    (run,) = await harness.final(schedule)
    assert (run.run_id, run.state, run.origin) == (asked.run_id, RunState.SUCCEEDED, Origin.RUN_NOW)
    assert run.scheduled_for is None
    assert run.run_folder == "iteration-1-sched"
    trail = await harness.trail(run.run_id)
    assert [row.kind for row in trail] == ["recorded", "claimed", "started", "finished"]
    assert (trail[0].data["by"], trail[1].data["identity"]) == ("test", SYSTEM.name)


async def test_nobody_asks_in_the_name_of_the_system_identity(harness: Harness) -> None:
    schedule = await harness.create()
    assert await refusal(harness, schedule, "a", SYSTEM.name) == "auth.system_identity"
    await harness.signal_run_now(schedule, "b", SYSTEM.name)
    asked = await harness.run_now(schedule, "c")
    assert [run.run_id for run in await harness.final(schedule)] == [asked.run_id]


async def test_the_same_key_is_the_same_run_and_another_is_refused_meanwhile(harness: Harness) -> None:
    schedule = await harness.create(script="hold")
    asked = await harness.run_now(schedule, "a")
    assert (await harness.run_now(schedule, "a")).run_id == asked.run_id
    assert await refusal(harness, schedule, "b") == "schedule.run.overlap"
    harness.probe.release(asked.run_id)
    await harness.final(schedule)
    assert harness.probe.executed.count(asked.run_id) == 1


async def test_a_run_that_lasts_is_shown_as_running_by_its_schedule(harness: Harness) -> None:
    schedule = await harness.create(script="hold")
    asked = await harness.run_now(schedule)

    async def running() -> bool:
        return [run.state for run in (await harness.view(schedule)).open_runs] == [RunState.RUNNING]

    await eventually(running, what="shown as running")
    harness.probe.release(asked.run_id)
    await harness.final(schedule)


async def test_a_signal_means_the_same_and_its_refusal_leaves_a_row(harness: Harness) -> None:
    schedule = await harness.create(script="hold")
    for key in ("a", "a", "b"):
        await harness.signal_run_now(schedule, key)
    held = await harness.in_state(schedule, RunState.RUNNING)
    harness.probe.release(held.run_id)
    runs = await harness.final(schedule, 2)
    assert {(run.state, run.reason) for run in runs} == {(RunState.SUCCEEDED, None), (RunState.SKIPPED, "overlap")}


async def test_it_is_allowed_while_paused_and_refused_while_blocked(harness: Harness) -> None:
    schedule = await harness.create(script="refuse:pointer_null")
    await harness.act(schedule, messages.PAUSE_UPDATE)
    await harness.run_now(schedule, "a")
    (run,) = await harness.final(schedule)
    assert (run.state, run.reason) == (RunState.NOT_STARTED, "pointer_null")
    assert await refusal(harness, schedule, "b") == "schedule.blocked"
    view = await harness.view(schedule)
    assert view.blocked is not None
    assert view.blocked.run_id == run.run_id
    unblocked = await harness.act(schedule, messages.UNBLOCK_UPDATE)
    assert (unblocked.schedule.blocked, unblocked.schedule.paused) == (None, True)
