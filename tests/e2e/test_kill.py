"""Whatever is killed, and whenever: one run for each occurrence and request, each with one honest end, none lost."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from domain import ids, messages
from domain.messages import RunNow
from domain.run import Run, RunState
from domain.schedule import CollisionPolicy, ScheduleView
from tests.e2e.machine import machine
from tests.e2e.work import Work
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(240)]

EVERY_MINUTE: dict[str, Any] = {"cron": "* * * * *", "collision_policy": "queue_latest"}
MINUTELY = {"min_interval_seconds": "60", "heartbeat_interval_seconds": "1"}


def ends(runs: list[Run]) -> list[tuple[str, str | None]]:
    return [(run.state.value, run.reason) for run in runs]


def assert_each_minute_once(runs: list[Run]) -> None:
    instants = [run.scheduled_for for run in runs]
    assert instants == [instants[0] + timedelta(minutes=n) for n in range(len(runs)) if instants[0] is not None]


def assert_the_world_agrees(work: Work, runs: list[Run]) -> None:
    """What ran left its traces once, and nothing else did."""
    for run in runs:
        expected = {RunState.SUCCEEDED: ["began", "ended"], RunState.UNKNOWN: ["began"]}.get(run.state, [])
        assert work.ledger(run.run_id) == expected, run
    assert work.executed() <= {run.run_id for run in runs}


async def test_a_worker_killed_while_a_step_runs_and_others_wait_under_every_policy(tmp_path: Path) -> None:
    async with machine(tmp_path, **MINUTELY) as up, up.api() as http:
        work = await Work.at(http, tmp_path)
        running, asked = await work.schedule("running", open_gate=False), await work.schedule("asked")
        due = {
            policy: await work.schedule(policy, cron="* * * * *", collision_policy=policy.value)
            for policy in CollisionPolicy
        }
        pending = [due[policy] for policy in CollisionPolicy if policy is not CollisionPolicy.SKIP]
        held = await work.run_now(running)
        pids = await work.began(held)
        waiting = await work.run_now(asked)
        for schedule in (asked, *pending):
            await work.in_state(schedule, "waiting", within=90)
        await work.in_state(due[CollisionPolicy.SKIP], "skipped")
        os.kill(up.pid_of("worker"), signal.SIGKILL)
        await work.over(pids)
        await up.ready_again("Worker")
        lost = await work.in_state(running, "unknown")
        assert (lost.run_id, lost.reason) == (held, "instance_lost")
        assert (await work.view(running))["blocked"]["run_id"] == held
        for schedule in pending:
            await work.in_state(schedule, "succeeded")
        assert await work.run_now(asked) == waiting
        for schedule in due.values():
            await work.pause(schedule)
        runs = await work.final([running, asked, *due.values()])
    assert ends(runs[running]) == [("unknown", "instance_lost")]
    assert ends(runs[asked]) == [("succeeded", None)]
    for schedule in due.values():
        assert {run.state for run in runs[schedule]} <= {RunState.SUCCEEDED, RunState.SKIPPED}
        assert_each_minute_once(runs[schedule])
    assert_the_world_agrees(work, [run for found in runs.values() for run in found])


async def test_postgresql_killed_while_runs_end_and_start(tmp_path: Path) -> None:
    async with machine(tmp_path, **MINUTELY) as up, up.api() as http:
        work, other = await Work.at(http, tmp_path), await Work.at(http, tmp_path, "other")
        running, starting = await work.schedule("running", open_gate=False), await other.schedule("starting")
        both = (running, starting)
        before = await work.run_now(running)
        await work.began(before)
        await work.in_state(running, "running")
        temporal = await up.temporal()

        def workflow(schedule: str) -> WorkflowHandle[Any, Any]:
            return temporal.get_workflow_handle(ids.schedule_workflow_id("default", schedule))

        async def decided() -> bool:
            views = [await workflow(schedule).query("schedule", result_type=ScheduleView) for schedule in both]
            return all(view.last_run is not None and not view.open_runs for view in views)

        async with up.left_alone():
            os.kill(up.pid_of("PostgreSQL"), signal.SIGKILL)
            work.open(running)
            await workflow(starting).signal(messages.RUN_NOW_SIGNAL, RunNow(key="meanwhile", by="test"))
            await eventually(decided, what="the end of both runs")
        await up.ready_again("PostgreSQL")
        runs = await work.final(both)
        assert ends(runs[running]) == [("succeeded", None)]
        assert ends(runs[starting]) == [("not_started", "record_unwritable")]
        assert await work.trail(before) == ["recorded", "claimed", "started", "finished"]
        assert await work.trail(runs[starting][0].run_id) == ["recorded", "finished"]
        assert (await work.view(starting))["blocked"] is None
        assert_the_world_agrees(work, runs[running] + runs[starting])
        again = await other.run_now(starting, "afterwards")
        assert (await other.desk.ended(again))["state"] == "succeeded"


async def test_temporal_killed_while_a_step_runs_and_another_waits(tmp_path: Path) -> None:
    """With heartbeats so far apart that the outage is too short for the worker to be taken for lost."""
    async with machine(tmp_path, heartbeat_interval_seconds="10") as up, up.api() as http:
        work = await Work.at(http, tmp_path)
        running, asked = await work.schedule("running", open_gate=False), await work.schedule("asked")
        await work.began(await work.run_now(running))
        await work.run_now(asked)
        await work.in_state(asked, "waiting")
        os.kill(up.pid_of("Temporal"), signal.SIGKILL)
        await up.ready_again("Temporal")
        work.open(running)
        runs = await work.final([running, asked])
        assert ends(runs[running]) == ends(runs[asked]) == [("succeeded", None)]
        assert_the_world_agrees(work, runs[running] + runs[asked])


async def test_all_killed_at_once_and_started_again(tmp_path: Path) -> None:
    """`almanac up` itself is killed, and takes all its parts along. Started on the same folder it goes on: the
    schedules fire, what waited runs, and only what had begun is unknown."""
    async with machine(tmp_path, **MINUTELY) as up:
        async with up.api() as http:
            work = await Work.at(http, tmp_path)
            due = await (await Work.at(http, tmp_path, "other")).schedule("due", **EVERY_MINUTE)
            running, asked = await work.schedule("running", open_gate=False), await work.schedule("asked")
            held = await work.run_now(running)
            pids = await work.began(held)
            await work.run_now(asked)
            await work.in_state(asked, "waiting")
            before = len(await work.runs(due))
        await up.kill()
        await work.over(pids)
        await up.start()
        async with up.api() as http:
            work = work.through(http)

            async def fired() -> bool:
                return len(await work.runs(due)) > before

            await eventually(fired, within=90, what="the next occurrence")
            await work.pause(due)
            runs = await work.final([running, asked, due])
    assert ends(runs[running]) == [("unknown", "instance_lost")]
    assert ends(runs[asked]) == [("succeeded", None)]
    assert_each_minute_once(runs[due])
    assert_the_world_agrees(work, [run for found in runs.values() for run in found])


async def test_ctrl_c_lets_what_runs_end_and_a_second_start_goes_on(tmp_path: Path) -> None:
    async with machine(tmp_path, **MINUTELY) as up:
        async with up.api() as http:
            work = await Work.at(http, tmp_path)
            running, asked = await work.schedule("running", open_gate=False), await work.schedule("asked")
            await work.began(await work.run_now(running))
            await work.in_state(running, "running")
            await work.run_now(asked)
            await work.in_state(asked, "waiting")
        await up.interrupt()

        async def draining() -> bool:
            return "Worker" in up.moments("stopping")

        await eventually(draining, what="the worker to be stopped")
        work.open(running)
        assert await up.up.wait() == 0
        assert up.moments("stopped") == ["API", "Worker", "Temporal", "PostgreSQL"]
        await up.start()
        async with up.api() as http:
            work = work.through(http)
            runs = await work.final([running, asked])
    assert ends(runs[running]) == ends(runs[asked]) == [("succeeded", None)]
    assert_the_world_agrees(work, runs[running] + runs[asked])
