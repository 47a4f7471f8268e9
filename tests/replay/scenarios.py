"""What the recorded histories are histories of: each scenario drives real workflows through one story.

Scenarios of one group run side by side; those that take a part of the stage away run alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio.client import WorkflowHandle

from domain import ids, messages
from domain.messages import Act, CancelRun, LaneDrop, LaneRelease, LaneWithdrawal, SetWorkspaceActive
from domain.run import Run, RunState
from domain.schedule import CollisionPolicy
from tests.replay.stage import Stage
from tests.waiting import eventually
from tests.workflows.harness import Harness
from tests.workflows.requests import LaneDesk

Scenario = Callable[[Stage, Harness], Awaitable[None]]

SHORT_HISTORY = 40


async def schedule_life(stage: Stage, harness: Harness) -> None:
    schedule = await harness.create()
    await harness.run_now(schedule, "update")
    await harness.final(schedule, 1)
    await harness.signal_run_now(schedule, "signal")
    await harness.final(schedule, 2)
    await harness.act(schedule, messages.PAUSE_UPDATE)
    await harness.act(schedule, messages.RESUME_UPDATE)
    await harness.revise(schedule, 1, cron="30 2 * * *", timezone="America/New_York")
    await harness.revise(schedule, 2, notes="Only words.")
    await harness.handle(schedule).execute_update(messages.REPLAN_UPDATE, Act(by="test"))
    for active in (False, True):
        await harness.handle(schedule).signal(messages.WORKSPACE_SIGNAL, SetWorkspaceActive(active=active))
    await harness.act(schedule, messages.DELETE_UPDATE)
    await harness.handle(schedule).result()


async def schedule_due(stage: Stage, harness: Harness) -> None:
    """Due every minute: one occurrence runs, and the next finds it still running."""
    schedule = await harness.create(script="hold", cron="* * * * *")
    held = await harness.in_state(schedule, RunState.RUNNING, within=90)
    await harness.in_state(schedule, RunState.SKIPPED, within=90)
    harness.probe.release(held.run_id)
    await harness.final(schedule, 2)
    await harness.act(schedule, messages.DELETE_UPDATE)


async def schedule_blocked(stage: Stage, harness: Harness) -> None:
    schedule = await harness.create(script="refuse:pointer_null")
    await harness.run_now(schedule, "first")
    await harness.final(schedule, 1)
    await harness.signal_run_now(schedule, "while blocked")
    await harness.final(schedule, 2)
    await harness.act(schedule, messages.UNBLOCK_UPDATE)
    await harness.revise(schedule, 1, payload={"lane": "a", "script": "succeed"})
    await harness.run_now(schedule, "mended")
    await harness.final(schedule, 3)


async def schedule_changes_lane(stage: Stage, harness: Harness) -> None:
    """A run of the old lane still goes on, so what is due for the new one waits at the schedule's own gate."""
    schedule = await harness.create(script="hold", lane="a", collision_policy="queue_latest", cron="* * * * *")
    held = await harness.run_now(schedule, "old")
    await harness.in_state(schedule, RunState.RUNNING)
    await harness.revise(schedule, payload={"lane": "b", "script": "succeed"})
    await harness.in_state(schedule, RunState.WAITING, within=90)
    harness.probe.release(held.run_id)
    await harness.final(schedule, 2)
    await harness.act(schedule, messages.DELETE_UPDATE)


async def schedule_run_dropped(stage: Stage, harness: Harness) -> None:
    first, second = await harness.create(script="hold"), await harness.create()
    held = await harness.run_now(first)
    await harness.in_state(first, RunState.RUNNING)
    await harness.run_now(second)
    waiting = await harness.in_state(second, RunState.WAITING)
    await harness.drop(waiting)
    await harness.final(second)
    harness.probe.release(held.run_id)
    await harness.final(first)


async def schedule_not_accepted(stage: Stage, harness: Harness) -> None:
    schedule = await harness.create(cron="61 * * * *")
    await harness.act(schedule, messages.UNBLOCK_UPDATE)
    await harness.revise(schedule, 1, cron="0 0 1 1 *")
    await harness.act(schedule, messages.UNBLOCK_UPDATE)


async def schedule_renewed(stage: Stage, harness: Harness) -> None:
    harness.history_limit = SHORT_HISTORY
    schedule = await harness.create()
    for number in range(12):
        await harness.run_now(schedule, f"{number}")
        await harness.final(schedule, number + 1)


async def schedule_without_database(stage: Stage, harness: Harness) -> None:
    """What happens meanwhile waits in the outbox, also across a continue-as-new, and arrives afterwards."""
    harness.history_limit = SHORT_HISTORY
    schedule = await harness.create()
    async with stage.without_database():
        for number in range(6):
            await harness.signal_run_now(schedule, f"{number}")
            await _settled(harness, schedule)
    await harness.final(schedule, 6, within=60)


async def schedule_with_kin(stage: Stage, harness: Harness) -> None:
    """One waits for its parent's occurrence of the same minute, another is driven by the parent's occurrences."""
    parent = await harness.create(lane="parent", script="hold", cron="* * * * *")
    child = await harness.create(lane="child", cron="* * * * *", after_schedule_ids=(parent,))
    driven = await harness.create(lane="driven", cron=None, after_schedule_ids=(parent,))
    held = await harness.in_state(parent, RunState.RUNNING, within=90)
    for dependent in (child, driven):
        await harness.in_state(dependent, RunState.WAITING)
    harness.probe.release(held.run_id)
    for dependent in (child, driven):
        await harness.in_state(dependent, RunState.SUCCEEDED)
    for schedule in (child, driven, parent):
        await harness.act(schedule, messages.DELETE_UPDATE)


async def lane_policies(stage: Stage, harness: Harness) -> None:
    """One held lane, and every way to wait for it or not."""
    desk = LaneDesk(harness)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await _in_state(harness, held, RunState.RUNNING)
    policies = CollisionPolicy
    for minute in (1, 2):
        await desk.request(desk.occurrence("latest", minute, policy=policies.QUEUE_LATEST))
        await desk.request(desk.occurrence("folding", minute, policy=policies.COALESCE, priority=1))
        await desk.request(desk.occurrence("trying", minute, policy=policies.RETRY))
    await desk.request(desk.occurrence("skipping", policy=policies.SKIP))
    await desk.request(desk.occurrence("holder", 1, policy=policies.SKIP))
    expired = await desk.request(desk.occurrence("obsolete", expires=timedelta(seconds=1)))
    await _in_state(harness, expired, RunState.SKIPPED)
    dropped = await desk.request(desk.occurrence("dropped"))
    await desk.send(messages.LANE_DROP_SIGNAL, LaneDrop(run_id=dropped.run_id, by="test"))
    withdrawn = await desk.request(desk.occurrence("withdrawn"))
    letter = LaneWithdrawal(schedule_id=withdrawn.schedule_id, reason="schedule_paused", message="It was paused.")
    await desk.send(messages.LANE_WITHDRAW_SIGNAL, letter)
    trying = desk.occurrence("trying", 1).run
    await _noted(harness, trying, "lane_retried")
    harness.probe.release(held.run_id)
    await _in_state(harness, trying, RunState.SUCCEEDED, within=120)
    await desk.free()


async def lane_lost_holder(stage: Stage, harness: Harness) -> None:
    """Two holders are ended from outside: after the one the lane waits out its doubt, the other is let go by hand."""
    desk = LaneDesk(harness)
    lost = [await desk.request(desk.occurrence(f"lost-{n}", script="hold")) for n in range(2)]
    after = await desk.request(desk.occurrence("after"))
    await _in_state(harness, lost[0], RunState.RUNNING)
    await _run(harness, lost[0]).terminate("as the scenario says")
    await _in_state(harness, lost[1], RunState.RUNNING)
    await _run(harness, lost[1]).terminate("as the scenario says")
    await _in_state(harness, lost[1], RunState.UNKNOWN)
    await desk.send(messages.LANE_RELEASE_SIGNAL, LaneRelease(run_id=lost[1].run_id))
    await _in_state(harness, after, RunState.SUCCEEDED)
    await desk.free()


async def lane_renewed(stage: Stage, harness: Harness) -> None:
    """Continues as new while held, re-attaches, and gives the lane to who has waited through it all."""
    desk = LaneDesk(harness, history_limit=SHORT_HISTORY)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await _in_state(harness, held, RunState.RUNNING)
    await _renew(desk, "waiting")
    harness.probe.release(held.run_id)
    await desk.free()


async def lane_renewed_in_doubt(stage: Stage, harness: Harness) -> None:
    """The holder is lost only after the lane continued as new, and the lane continues as new once more in doubt."""
    desk = LaneDesk(harness, history_limit=SHORT_HISTORY)
    held = await desk.request(desk.occurrence("holder", script="hold"))
    await _in_state(harness, held, RunState.RUNNING)
    await _renew(desk, "before")
    await _run(harness, held).terminate("as the scenario says")
    await _in_state(harness, held, RunState.UNKNOWN)
    await _renew(desk, "after")
    await desk.free()


async def lane_started_anew(stage: Stage, harness: Harness) -> None:
    """The lane itself is ended from outside; asked again for a run that goes on, the next one watches it."""
    desk = LaneDesk(harness)
    entry = desk.occurrence("holder", script="hold")
    held = await desk.request(entry)
    await _in_state(harness, held, RunState.RUNNING)
    await desk.handle.terminate("as the scenario says")
    await desk.request(entry)
    harness.probe.release(held.run_id)
    await desk.free()


async def run_ends(stage: Stage, harness: Harness) -> None:
    for lane, script in enumerate(("succeed", "fail", "raise", "refuse:pointer_null", "refuse:record_unwritable")):
        schedule = await harness.create(script=script, lane=f"{lane}")
        await harness.run_now(schedule)
        await harness.final(schedule)


async def run_detached(stage: Stage, harness: Harness) -> None:
    """One ends, one is asked to end, and of one nobody is certain that it began until it tells its end."""
    probe = stage.detached
    ended, cancelled = [await harness.create(executor="detached_probe", lane=lane) for lane in "ab"]
    for schedule in (ended, cancelled):
        await harness.run_now(schedule)
    for schedule in (ended, cancelled):
        running = await harness.in_state(schedule, RunState.RUNNING)
        await eventually(partial(_is_in, running.run_id, probe.launched), what="its launch")
        if schedule is cancelled:
            await _run(harness, running).signal(messages.CANCEL_RUN_SIGNAL, CancelRun(by="test"))
            await eventually(partial(_is_in, running.run_id, probe.cancelled), what="its executor being asked")
        probe.end(running.run_id)
        await harness.final(schedule)
    lost = await harness.create(executor="detached_probe", script="lost", lane="c", lateness_seconds=0)
    await harness.run_now(lost)
    (unknown,) = await harness.final(lost)
    probe.begin(unknown.run_id)
    probe.end(unknown.run_id)
    await harness.in_state(lost, RunState.SUCCEEDED)


async def run_cancelled(stage: Stage, harness: Harness) -> None:
    schedule = await harness.create(script="hold")
    await harness.run_now(schedule)
    running = await harness.in_state(schedule, RunState.RUNNING)
    await _run(harness, running).signal(messages.CANCEL_RUN_SIGNAL, CancelRun(by="test"))
    await harness.final(schedule)


async def run_finds_no_slot(stage: Stage, harness: Harness) -> None:
    """One is tried again and succeeds, the other is worth no second try."""
    patient, hurried = await harness.create(lane="a"), await harness.create(lane="b", lateness_seconds=0)
    async with stage.without_slots():
        tried = await harness.run_now(patient)
        await harness.run_now(hurried)
        await harness.final(hurried, within=60)

        async def retried() -> bool:
            run: Run = await _run(harness, tried).query("run", result_type=Run)
            return run.seq > 2 * 10_000

        await eventually(retried, within=60, what="a second try")
    await harness.final(patient, within=60)


async def run_loses_its_worker(stage: Stage, harness: Harness) -> None:
    schedule, other = await harness.create(script="hold"), await harness.create()
    async with stage.other_worker() as worker:
        await harness.run_now(schedule)
        await harness.in_state(schedule, RunState.RUNNING)
        await harness.run_now(other)
        await harness.in_state(other, RunState.WAITING)
        worker.kill()
        await harness.final(schedule)
    await harness.final(other)


TOGETHER: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        schedule_life,
        schedule_due,
        schedule_blocked,
        schedule_changes_lane,
        schedule_run_dropped,
        schedule_not_accepted,
        schedule_renewed,
        schedule_with_kin,
        lane_policies,
        lane_lost_holder,
        lane_renewed,
        lane_renewed_in_doubt,
        lane_started_anew,
        run_ends,
        run_detached,
        run_cancelled,
    )
}
ALONE: dict[str, Scenario] = {
    scenario.__name__: scenario for scenario in (schedule_without_database, run_finds_no_slot, run_loses_its_worker)
}


# Looking --------------------------------------------------------------------------------------------


def _run(harness: Harness, run: Run) -> WorkflowHandle[Any, Any]:
    return harness.client.get_workflow_handle(ids.run_workflow_id(run.workspace, run.run_id))


async def _is_in(run_id: str, those: list[str]) -> bool:
    return run_id in those


async def _in_state(harness: Harness, run: Run, state: RunState, within: float = 30.0) -> None:
    await harness.in_state(run.schedule_id, state, within)


async def _noted(harness: Harness, run: Run, kind: str) -> None:
    async def look() -> bool:
        return kind in [row.kind for row in await harness.trail(run.run_id)]

    await eventually(look, within=60, what=f"{kind} of {run.run_id}")


async def _settled(harness: Harness, schedule: str) -> None:
    """No run of it is under way, as the schedule itself knows."""

    async def look() -> bool:
        return not (await harness.view(schedule)).open_runs

    await eventually(look, what=f"the end of the runs of {schedule}")


async def _renew(desk: LaneDesk, schedule: str) -> None:
    """Asks for the lane so often that it continues as new. All but the last request are superseded."""
    before = await desk.renewals()
    for minute in range(60):
        await desk.request(desk.occurrence(schedule, minute))
        if await desk.renewals() > before:
            return
    raise AssertionError("the lane never continued as new")
