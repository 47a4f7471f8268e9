"""What a person can say about lanes over REST: cancel what waits, switch a workspace off, accept the parallel risk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.command import explain
from domain import risk
from tests.api.desk import Desk
from tests.waiting import eventually

pytestmark = pytest.mark.stack


async def holding(desk: Desk, until: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two schedules of one pipeline, whose step goes on until the file is there."""
    await desk.release("daily/report", ["sh", "-c", f"until [ -e {until} ]; do sleep 0.1; done"])
    return await desk.created(name="daily/first"), await desk.created(name="daily/second")


async def in_state(desk: Desk, run_id: str, state: str) -> None:
    async def look() -> bool:
        return bool((await desk.get(f"/runs/{run_id}")).json()["state"] == state)

    await eventually(look, what=f"{run_id} {state}")


async def test_a_waiting_run_is_cancelled_and_the_one_that_runs_is_not(desk: Desk, tmp_path: Path) -> None:
    first, second = await holding(desk, tmp_path / "go")
    holder = (await desk.post(f"/schedules/{first['schedule_id']}/run-now")).json()
    await in_state(desk, holder["run_id"], "running")
    waiting = (await desk.post(f"/schedules/{second['schedule_id']}/run-now")).json()
    await in_state(desk, waiting["run_id"], "waiting")
    assert (await desk.post(f"/runs/{waiting['run_id']}/cancel")).status_code == 202
    dropped = await desk.ended(waiting["run_id"])
    assert (dropped["state"], dropped["reason"]) == ("skipped", "operator")
    assert "operator" in dropped["message"]
    (tmp_path / "go").touch()
    assert (await desk.ended(holder["run_id"]))["state"] == "succeeded"
    again = await desk.post(f"/runs/{waiting['run_id']}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "run.ended")


async def test_an_inactive_workspace_starts_nothing_and_forgets_nothing(desk: Desk) -> None:
    schedule = await desk.created(cron="0 * * * *")
    switched = await desk.put("", {"active": False})
    assert switched.json() == {"name": desk.workspace, "active": False, "posture": "production"}

    async def told() -> bool:
        return (await desk.get(f"/schedules/{schedule['schedule_id']}")).json()["next_due_at"] is None

    await eventually(told, what="nothing due")
    asked = (await desk.post(f"/schedules/{schedule['schedule_id']}/run-now")).json()
    refused = await desk.ended(asked["run_id"])
    assert (refused["state"], refused["reason"]) == ("not_started", "workspace_inactive")
    assert (await desk.get(f"/schedules/{schedule['schedule_id']}")).json()["condition"] == "active"
    assert (await desk.put("", {"active": True})).json()["active"] is True

    async def due_again() -> bool:
        return (await desk.get(f"/schedules/{schedule['schedule_id']}")).json()["next_due_at"] is not None

    await eventually(due_again, what="the next due time")
    again = (await desk.post(f"/schedules/{schedule['schedule_id']}/run-now")).json()
    assert (await desk.ended(again["run_id"]))["state"] == "succeeded"


async def test_a_schedule_made_while_its_workspace_is_inactive_is_due_once_that_is_active(desk: Desk) -> None:
    await desk.put("", {"active": False})
    schedule = await desk.created(cron="0 * * * *")
    assert (schedule["condition"], schedule["next_due_at"]) == ("active", None)
    await desk.put("", {"active": True})

    async def due() -> bool:
        return (await desk.get(f"/schedules/{schedule['schedule_id']}")).json()["next_due_at"] is not None

    await eventually(due, what="the next due time")


async def test_making_a_workspace_again_does_not_switch_it(desk: Desk) -> None:
    await desk.put("", {"active": False})
    assert (await desk.http.put(desk.root)).json()["active"] is False


async def test_parallel_admission_needs_the_text_s_version_and_the_refusal_shows_the_text(desk: Desk) -> None:
    refused = await desk.post(
        "/schedules",
        {
            "name": "daily/beside",
            "cron": "0 9 1 1 *",
            "timezone": "UTC",
            "payload": {"pipeline": "daily/report", "version": "current"},
            "admission": "parallel",
        },
    )
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (400, "schedule.validation.acknowledgement_required")
    assert problem["text"] == risk.TEXT
    assert risk.TEXT in explain(problem)
    created = await desk.created(admission="parallel", acknowledged_risk=problem["text_version"])
    assert created["acknowledgement"]["by"] == "operator"
    assert created["acknowledgement"]["text_version"] == risk.TEXT_VERSION


async def test_a_replan_says_what_moved(desk: Desk) -> None:
    schedule = await desk.created()
    answer = await desk.post(f"/schedules/{schedule['schedule_id']}/replan")
    replanned = answer.json()
    assert (answer.status_code, replanned["moved"]) == (200, [])
    assert replanned["schedule"]["tzdata_version"] == replanned["tzdata_before"]
    assert answer.headers["ETag"] == '"1"'
