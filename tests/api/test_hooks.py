"""Webhooks over REST, on real servers: a signed delivery runs the schedule, in a folder of the hook family."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from api.signature import sign
from readmodel.audit import Audit
from readmodel.database import Database
from readmodel.hooks import OVERLAP, Hooks
from tests.api.desk import Desk

pytestmark = pytest.mark.stack


@pytest.fixture
async def schedule(desk: Desk) -> str:
    return str((await desk.created())["schedule_id"])


@pytest.fixture
async def hook(desk: Desk, schedule: str) -> dict[str, Any]:
    made = await desk.post(f"/schedules/{schedule}/hooks")
    assert made.status_code == 201
    return dict(made.json())


async def deliver(
    desk: Desk, hook: dict[str, Any], body: bytes = b"{}", *, secret: str | None = None, at: int | None = None
) -> httpx.Response:
    """As a sender who has no token."""
    timestamp = str(int(time.time()) if at is None else at)
    headers = {"Almanac-Timestamp": timestamp, "Almanac-Signature": sign(secret or hook["secret"], timestamp, body)}
    return await desk.http.post(hook["path"], content=body, headers=headers | {"Authorization": ""})


async def test_a_signed_delivery_is_a_run_of_the_hook_family(desk: Desk, schedule: str, hook: dict[str, Any]) -> None:
    delivered = await deliver(desk, hook)

    assert delivered.status_code == 202, delivered.text
    run = await desk.ended(delivered.json()["run_id"])
    assert (run["state"], run["origin"], run["schedule_id"]) == ("succeeded", "hook", schedule)
    assert run["run_folder"] == "iteration-1-hook"
    evidence = (await desk.get(f"/runs/{run['run_id']}/evidence")).json()
    assert evidence["run"]["metadata"]["identity"]["run_kind"] == "hook"
    assert evidence["run"]["metadata"]["identity"]["trigger_source"] == "hook"


async def test_the_same_delivery_again_is_the_same_run(desk: Desk, hook: dict[str, Any]) -> None:
    at = int(time.time())
    first = await deliver(desk, hook, b"a", at=at)
    await desk.ended(first.json()["run_id"])
    again = await deliver(desk, hook, b"a", at=at)

    assert again.status_code == 202
    assert again.json()["run_id"] == first.json()["run_id"]
    assert len((await desk.get("/runs")).json()["items"]) == 1


@pytest.mark.parametrize("age", [301, -330])
async def test_a_delivery_outside_the_window_runs_nothing(desk: Desk, hook: dict[str, Any], age: int) -> None:
    refused = await deliver(desk, hook, at=int(time.time()) - age)
    assert (refused.status_code, refused.json()["code"]) == (401, "hook.timestamp_stale")
    assert (await desk.get("/runs")).json()["items"] == []


async def test_a_wrong_signature_and_an_unknown_webhook_are_told_alike(desk: Desk, hook: dict[str, Any]) -> None:
    wrong = await deliver(desk, hook, secret="another")  # noqa: S106
    unknown = await deliver(desk, hook | {"path": "/api/v1/hooks/h0123456789abcdef01234567"})
    unsigned = await desk.http.post(hook["path"], content=b"{}")
    assert wrong.json() == unknown.json() == unsigned.json()
    assert (wrong.status_code, wrong.json()["code"]) == (401, "hook.signature_wrong")


async def test_a_rotated_secret_is_good_until_the_overlap_ends(
    desk: Desk, database: Database, schedule: str, hook: dict[str, Any]
) -> None:
    rotated = (await desk.post(f"/schedules/{schedule}/hooks/{hook['hook_id']}/rotate")).json()

    assert rotated["secret"] != hook["secret"]
    for number, secret in enumerate((hook["secret"], rotated["secret"])):
        delivered = await deliver(desk, hook, str(number).encode(), secret=secret)
        assert delivered.status_code == 202, delivered.text
        await desk.ended(delivered.json()["run_id"])
    after = datetime.fromisoformat(rotated["rotated_at"]) + OVERLAP
    known = await Hooks(database).known(hook["hook_id"], after)
    assert known is not None
    assert known.secrets == (rotated["secret"],)
    before = await Hooks(database).known(hook["hook_id"], after - timedelta(seconds=1))
    assert before is not None
    assert before.secrets == (rotated["secret"], hook["secret"])


async def test_a_secret_is_shown_once_and_never_audited(
    desk: Desk, database: Database, schedule: str, hook: dict[str, Any]
) -> None:
    listed = await desk.get(f"/schedules/{schedule}/hooks")
    assert [item["hook_id"] for item in listed.json()["items"]] == [hook["hook_id"]]
    assert hook["secret"] not in listed.text
    audited = await Audit(database).page(desk.workspace)
    assert "hook.create" in [row.action for row in audited.items]
    assert hook["secret"] not in audited.model_dump_json()


async def test_a_deleted_webhook_runs_nothing(desk: Desk, schedule: str, hook: dict[str, Any]) -> None:
    path = f"/schedules/{schedule}/hooks/{hook['hook_id']}"
    assert (await desk.delete(path)).status_code == 204
    assert (await deliver(desk, hook)).status_code == 401
    for gone in (await desk.delete(path), await desk.post(f"{path}/rotate")):
        assert (gone.status_code, gone.json()["code"]) == (404, "hook.not_found")


async def test_a_schedule_of_another_workspace_gets_no_webhook(desk: Desk, schedule: str, hook: dict[str, Any]) -> None:
    other = Desk(desk.http, f"{desk.workspace}-b")
    await other.open()
    assert (await other.post(f"/schedules/{schedule}/hooks")).status_code == 404
    assert (await other.get(f"/schedules/{schedule}/hooks")).status_code == 404
    assert (await other.post(f"/schedules/{schedule}/hooks/{hook['hook_id']}/rotate")).status_code == 404
    assert (await other.delete(f"/schedules/{schedule}/hooks/{hook['hook_id']}")).status_code == 404


async def test_a_delivery_is_refused_as_run_now_is(desk: Desk) -> None:
    await desk.release("slow", ["sleep", "60"])
    slow = await desk.created(payload={"pipeline": "slow", "version": "current"}, execution_timeout_seconds=5)
    hook = (await desk.post(f"/schedules/{slow['schedule_id']}/hooks")).json()
    first = await deliver(desk, hook, b"1")

    second = await deliver(desk, hook, b"2")

    assert (second.status_code, second.json()["code"]) == (409, "schedule.run.overlap")
    assert second.json()["run_id"] == first.json()["run_id"]


async def test_a_huge_delivery_is_refused(desk: Desk, hook: dict[str, Any]) -> None:
    refused = await deliver(desk, hook, b" " * 200_000)
    assert (refused.status_code, refused.json()["code"]) == (413, "request.body_too_large")
