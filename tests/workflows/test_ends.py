"""Runs that end without a worker being lost: each reason, and whether its schedule then fires nothing."""

from __future__ import annotations

from typing import Any

import pytest

from domain import messages
from domain.run import RunState
from tests.workflows.harness import Harness
from worker.settings import WorkerSettings

pytestmark = pytest.mark.stack


@pytest.mark.parametrize(
    ("changes", "state", "reason", "blocks"),
    [
        ({"script": "succeed"}, RunState.SUCCEEDED, None, False),
        ({"script": "fail"}, RunState.FAILED, "execution_failed", False),
        ({"script": "raise"}, RunState.UNKNOWN, "start_failed", True),
        ({"script": "break"}, RunState.NOT_STARTED, "start_refused", True),
        ({"executor": "gone"}, RunState.NOT_STARTED, "executor_unavailable", True),
        ({"script": "refuse:version_changed"}, RunState.NOT_STARTED, "version_changed", False),
        ({"script": "refuse:authority_refused"}, RunState.NOT_STARTED, "authority_refused", True),
    ],
)
async def test_an_end_and_what_it_blocks(
    harness: Harness, changes: dict[str, Any], state: RunState, reason: str | None, blocks: bool
) -> None:
    schedule = await harness.create(**changes)
    asked = await harness.run_now(schedule)
    (run,) = await harness.final(schedule)
    assert (run.state, run.reason) == (state, reason)
    assert (run.execution_id is None) is (state is RunState.NOT_STARTED)
    assert (asked.run_id in harness.probe.executed) is (state is not RunState.NOT_STARTED)
    blocked = (await harness.view(schedule)).blocked
    assert (blocked is not None) is blocks
    if blocked is not None:
        assert (blocked.reason, blocked.run_id) == (reason, run.run_id)


async def test_a_run_without_a_folder_starts_nothing_and_blocks_nothing(
    harness: Harness, worker_settings: WorkerSettings
) -> None:
    worker_settings.storage.mkdir(exist_ok=True)
    (worker_settings.storage / harness.workspace).touch()
    schedule = await harness.create()
    await harness.run_now(schedule)
    (run,) = await harness.final(schedule)
    assert (run.state, run.reason) == (RunState.NOT_STARTED, "folder_unwritable")
    assert run.run_id not in harness.probe.executed
    assert (await harness.view(schedule)).blocked is None


async def test_what_the_worker_itself_says_to_be_over_frees_the_lane_at_once(harness: Harness) -> None:
    """There is nothing to wait for, while a lost execution may go on for a while."""
    broken, other = await harness.create(script="raise"), await harness.create()
    await harness.run_now(broken)
    await harness.final(broken)
    await harness.run_now(other)
    (run,) = await harness.final(other)
    assert run.state is RunState.SUCCEEDED


async def test_a_run_asked_for_while_blocked_is_skipped(harness: Harness) -> None:
    schedule = await harness.create(script="refuse:pointer_null")
    await harness.run_now(schedule)
    await harness.final(schedule)
    await harness.signal_run_now(schedule, "while blocked")
    runs = await harness.final(schedule, 2)
    assert (runs[1].state, runs[1].reason) == (RunState.SKIPPED, "schedule_blocked")


async def test_what_waits_ends_with_its_deleted_schedule(harness: Harness) -> None:
    holder, schedule = await harness.create(script="hold"), await harness.create()
    held = await harness.run_now(holder)
    await harness.in_state(holder, RunState.RUNNING)
    await harness.run_now(schedule)
    await harness.in_state(schedule, RunState.WAITING)
    await harness.act(schedule, messages.DELETE_UPDATE)
    (dropped,) = await harness.final(schedule)
    assert (dropped.state, dropped.reason) == (RunState.SKIPPED, "schedule_deleted")
    harness.probe.release(held.run_id)
    await harness.final(holder)
