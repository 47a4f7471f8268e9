"""Run now, runs and trails over REST, on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.desk import Desk
from tests.waiting import eventually

pytestmark = pytest.mark.stack


@pytest.fixture
async def schedule(desk: Desk) -> str:
    return str((await desk.created())["schedule_id"])


async def test_run_now_answers_a_run_that_is_there_at_once_and_ends(desk: Desk, schedule: str) -> None:
    accepted = await desk.post(f"/schedules/{schedule}/run-now")

    assert accepted.status_code == 202
    run = accepted.json()
    assert (run["origin"], run["scheduled_for"]) == ("run_now", None)
    read = await desk.http.get(accepted.headers["Location"])
    assert read.json()["run_id"] == run["run_id"]
    assert (await desk.ended(run["run_id"]))["state"] == "succeeded"
    trail = (await desk.get(f"/runs/{run['run_id']}/trail")).json()["items"]
    assert trail[0]["kind"] == "recorded"
    assert [row["seq"] for row in trail] == sorted({row["seq"] for row in trail})
    assert trail[-1]["state"] == "succeeded"


@pytest.mark.parametrize("how", ["header", "body", "both"])
async def test_the_same_key_is_the_same_run(desk: Desk, schedule: str, how: str) -> None:
    headers = {"Idempotency_Key": "order-7"} if how != "body" else {}
    body = {"key": "order-7"} if how != "header" else None

    first = await desk.post(f"/schedules/{schedule}/run-now", body, **headers)
    await desk.ended(first.json()["run_id"])
    again = await desk.post(f"/schedules/{schedule}/run-now", body, **headers)

    assert first.json()["run_id"] == again.json()["run_id"]
    assert len((await desk.get("/runs")).json()["items"]) == 1


async def test_two_keys_in_one_request_are_refused(desk: Desk, schedule: str) -> None:
    answer = await desk.post(f"/schedules/{schedule}/run-now", {"key": "a"}, Idempotency_Key="b")

    assert (answer.status_code, answer.json()["code"]) == (400, "request.key_ambiguous")


@pytest.mark.parametrize("key", ["", "k" * 201, "two words"])
async def test_a_key_that_is_none_is_refused(desk: Desk, schedule: str, key: str) -> None:
    answer = await desk.post(f"/schedules/{schedule}/run-now", Idempotency_Key=key)

    assert (answer.status_code, answer.json()["code"]) == (400, "request.field_invalid")
    assert (await desk.get("/runs")).json()["items"] == []


async def test_run_now_is_refused_while_a_run_is_active(desk: Desk) -> None:
    await desk.release("slow", ["sleep", "60"])
    slow = await desk.created(payload={"pipeline": "slow", "version": "current"}, execution_timeout_seconds=5)
    first = await desk.post(f"/schedules/{slow['schedule_id']}/run-now")

    second = await desk.post(f"/schedules/{slow['schedule_id']}/run-now")

    assert (second.status_code, second.json()["code"]) == (409, "schedule.run.overlap")
    assert second.json()["run_id"] == first.json()["run_id"]


async def test_run_now_is_allowed_while_paused(desk: Desk, schedule: str) -> None:
    await desk.post(f"/schedules/{schedule}/pause")

    accepted = await desk.post(f"/schedules/{schedule}/run-now")

    assert (await desk.ended(accepted.json()["run_id"]))["state"] == "succeeded"


async def test_runs_are_filtered_and_paged_newest_first(desk: Desk, schedule: str) -> None:
    await desk.release("bad", ["false"])
    bad = (await desk.created(name="bad", payload={"pipeline": "bad", "version": "current"}))["schedule_id"]
    ran = []
    for each in (schedule, bad, schedule):
        ran.append((await desk.post(f"/schedules/{each}/run-now")).json()["run_id"])
        await desk.ended(ran[-1])

    async def ids(**query: Any) -> list[str]:
        return [run["run_id"] for run in (await desk.get("/runs", **query)).json()["items"]]

    assert await ids() == ran[::-1]
    assert await ids(schedule_id=bad) == [ran[1]]
    assert await ids(state=["failed", "unknown"]) == [ran[1]]
    assert await ids(origin="cron") == []
    page = (await desk.get("/runs", limit=2)).json()
    assert await ids(limit=2, cursor=page["next_cursor"]) == [ran[0]]


@pytest.mark.parametrize("run_id", ["nope", "s%00", "a" * 3000, "saaaaaaaaaaaa-now-0123456789abcdef"])
async def test_an_unknown_run_is_not_found(desk: Desk, run_id: str) -> None:
    for path in (f"/runs/{run_id}", f"/runs/{run_id}/trail"):
        answer = await desk.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "run.not_found")


async def test_a_run_of_another_workspace_is_not_found(desk: Desk, schedule: str) -> None:
    run_id = (await desk.post(f"/schedules/{schedule}/run-now")).json()["run_id"]
    other = Desk(desk.http, f"{desk.workspace}-b")
    await other.open()

    for path in (f"/runs/{run_id}", f"/runs/{run_id}/trail"):
        assert (await other.get(path)).json()["code"] == "run.not_found"


async def test_a_run_is_cancelled_and_its_program_with_it(desk: Desk) -> None:
    await desk.release("slow", ["sleep", "600"])
    slow = await desk.created(payload={"pipeline": "slow", "version": "current"})
    run = (await desk.post(f"/schedules/{slow['schedule_id']}/run-now")).json()

    accepted = await desk.post(f"/runs/{run['run_id']}/cancel")

    assert (accepted.status_code, accepted.json()["run_id"]) == (202, run["run_id"])
    ended = await desk.ended(run["run_id"])
    assert (ended["state"], ended["reason"], ended["message"]) == ("cancelled", "cancelled", "operator cancelled it.")
    again = await desk.post(f"/runs/{run['run_id']}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "run.ended")


async def test_a_run_that_waits_for_its_lane_is_dropped(desk: Desk) -> None:
    await desk.release("slow", ["sleep", "600"])
    payload = {"pipeline": "slow", "version": "current"}
    held, waits = [(await desk.created(name=name, payload=payload))["schedule_id"] for name in ("held", "waits")]
    holder = (await desk.post(f"/schedules/{held}/run-now")).json()["run_id"]
    waiting = (await desk.post(f"/schedules/{waits}/run-now")).json()["run_id"]

    async def is_waiting() -> bool:
        return bool((await desk.get(f"/runs/{waiting}")).json()["state"] == "waiting")

    await eventually(is_waiting, what="the second run to wait")
    assert (await desk.post(f"/runs/{waiting}/cancel")).status_code == 202
    dropped = await desk.ended(waiting)
    assert (dropped["state"], dropped["reason"]) == ("skipped", "operator")
    assert (await desk.get(f"/runs/{holder}")).json()["state"] in ("queued", "starting", "running")
    await desk.post(f"/runs/{holder}/cancel")
    await desk.ended(holder)


async def test_a_run_that_is_not_there_cannot_be_cancelled(desk: Desk) -> None:
    answer = await desk.post("/runs/s1-now-0/cancel")

    assert (answer.status_code, answer.json()["code"]) == (404, "run.not_found")
