"""Schedules over REST, on real servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.desk import PIPELINE, Desk, definition

pytestmark = pytest.mark.stack


async def test_a_created_schedule_is_there_in_the_next_read(desk: Desk) -> None:
    created = await desk.post("/schedules", definition(cron=" 0 9 1 1 * "))

    assert created.status_code == 201
    view = created.json()
    assert view.pop("warnings") == []
    assert created.headers["ETag"] == '"1"'
    assert created.headers["Location"] == f"{desk.root}/schedules/{view['schedule_id']}"
    assert view["definition"]["cron"] == "0 9 1 1 *"
    assert view["target"] == f"pipeline:{PIPELINE}"
    assert (await desk.http.get(created.headers["Location"])).json() == view
    assert (await desk.get("/schedules")).json() == {"items": [view], "next_cursor": None}


async def test_every_act_is_there_in_the_next_read(desk: Desk) -> None:
    path = f"/schedules/{(await desk.created())['schedule_id']}"
    for act, condition in (("pause", "paused"), ("resume", "active"), ("unblock", "active")):
        answer = await desk.post(f"{path}/{act}")
        assert (answer.status_code, answer.json()["condition"]) == (200, condition), act
        assert (await desk.get(path)).json() == answer.json()


async def test_the_same_idempotency_key_is_the_same_schedule(desk: Desk) -> None:
    first = await desk.post("/schedules", definition(), Idempotency_Key="k1")
    again = await desk.post("/schedules", definition(), Idempotency_Key="k1")

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["schedule_id"] == again.json()["schedule_id"]
    assert len((await desk.get("/schedules")).json()["items"]) == 1


async def test_the_same_key_with_another_definition_is_refused(desk: Desk) -> None:
    await desk.post("/schedules", definition(), Idempotency_Key="k1")

    other = await desk.post("/schedules", definition(name="other"), Idempotency_Key="k1")

    assert (other.status_code, other.json()["code"]) == (409, "schedule.exists")
    await desk.created(name="other")


async def test_a_key_whose_schedule_was_deleted_creates_no_other(desk: Desk) -> None:
    first = await desk.post("/schedules", definition(), Idempotency_Key="k1")
    await desk.delete(f"/schedules/{first.json()['schedule_id']}")

    again = await desk.post("/schedules", definition(), Idempotency_Key="k1")

    assert (again.status_code, again.json()["code"]) == (409, "schedule.deleted")


async def test_the_same_key_in_two_workspaces_is_two_schedules(desk: Desk) -> None:
    other = Desk(desk.http, f"{desk.workspace}-b")
    await other.open()
    here = await desk.post("/schedules", definition(), Idempotency_Key="k1")
    there = await other.post("/schedules", definition(), Idempotency_Key="k1")

    assert here.json()["schedule_id"] != there.json()["schedule_id"]


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"cron": "0 9 * *"}, "schedule.validation.cron_field_count", "cron"),
        ({"cron": "* * * * *"}, "schedule.validation.interval_too_short", "cron"),
        ({"timezone": "Mars/Olympus"}, "schedule.validation.zone_unknown", "timezone"),
        ({"timezone": None}, "request.field_missing", "timezone"),
        ({"nme": "x"}, "request.field_unknown", "nme"),
        ({"priority": "5"}, "request.field_type", "priority"),
        ({"priority": 10}, "request.field_invalid", "priority"),
        ({"missed_policy": "sometimes"}, "request.field_invalid", "missed_policy"),
        ({"start_deadline": "25:00"}, "request.field_invalid", "start_deadline"),
        ({"name": "a//b"}, "schedule.validation.name_invalid", "name"),
        ({"executor": "magic"}, "schedule.validation.executor_unknown", "executor"),
        ({"payload": {"pipeline": "no/such", "version": "current"}}, "schedule.validation.target_not_found", None),
        ({"payload": {"pipeline": PIPELINE, "version": "latest"}}, "schedule.validation.payload_invalid", None),
    ],
)
async def test_what_can_not_be_right_is_refused_and_changes_nothing(
    desk: Desk, changes: dict[str, Any], code: str, field: str | None
) -> None:
    answer = await desk.post("/schedules", definition(**changes))

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (400, code), problem
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert field is None or problem["field"] == field
    assert problem["detail"]
    assert (await desk.get("/schedules")).json()["items"] == []


async def test_a_pipeline_that_is_not_released_is_no_target(desk: Desk) -> None:
    await desk.put("/pipelines/draft/only", {"name": "draft/only", "steps": [{"id": "a", "command": ["true"]}]})

    answer = await desk.post("/schedules", definition(payload={"pipeline": "draft/only", "version": "current"}))

    assert (answer.status_code, answer.json()["code"]) == (400, "schedule.validation.target_not_released")


async def test_a_name_is_taken_in_any_case_until_it_is_given_up(desk: Desk) -> None:
    first = await desk.created(name="Daily/Report")
    taken = await desk.post("/schedules", definition(name="daily/report"))
    assert (taken.status_code, taken.json()["code"]) == (409, "schedule.name_taken")

    renamed = definition(name="weekly/report") | {"revision": 1}
    assert (await desk.put(f"/schedules/{first['schedule_id']}", renamed)).status_code == 200

    second = await desk.created(name="daily/report")
    assert (await desk.delete(f"/schedules/{second['schedule_id']}")).status_code == 204
    await desk.created(name="DAILY/report")


async def test_a_refused_rename_leaves_the_name_free(desk: Desk) -> None:
    first = await desk.created()
    stale = await desk.put(f"/schedules/{first['schedule_id']}", definition(name="other") | {"revision": 7})
    assert (stale.status_code, stale.json()["code"]) == (409, "schedule.revision_conflict")

    await desk.created(name="other")


async def test_a_workspace_has_no_more_schedules_than_it_may(desk: Desk) -> None:
    for number in range(5):
        await desk.created(name=f"n{number}")

    sixth = await desk.post("/schedules", definition(name="n5"))

    assert (sixth.status_code, sixth.json()["code"]) == (409, "schedule.limit_reached")


async def test_a_replacement_needs_the_revision_that_was_read(desk: Desk) -> None:
    path = f"/schedules/{(await desk.created())['schedule_id']}"
    noon = definition(cron="0 12 1 1 *")

    unsaid = await desk.put(path, noon)
    assert (unsaid.status_code, unsaid.json()["field"]) == (400, "revision")
    odd = await desk.put(path, noon, If_Match="*")
    assert (odd.status_code, odd.json()["code"]) == (400, "request.if_match_invalid")
    both = await desk.put(path, noon | {"revision": 2}, If_Match='"1"')
    assert (both.status_code, both.json()["code"]) == (400, "request.revision_ambiguous")

    done = await desk.put(path, noon, If_Match='"1"')
    assert (done.status_code, done.headers["ETag"], done.json()["revision"]) == (200, '"2"', 2)
    assert (await desk.get(path)).json()["definition"]["cron"] == "0 12 1 1 *"

    stale = await desk.put(path, definition(), If_Match='"1"')
    assert (stale.status_code, stale.json()["code"], stale.json()["current"]) == (409, "schedule.revision_conflict", 2)
    assert (await desk.get(path)).json()["revision"] == 2


async def test_two_who_read_the_same_revision_do_not_overwrite_each_other(desk: Desk) -> None:
    path = f"/schedules/{(await desk.created())['schedule_id']}"

    answers = await asyncio.gather(
        *(desk.put(path, definition(cron=f"{minute} 9 1 1 *") | {"revision": 1}) for minute in range(1, 9))
    )

    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]


async def test_many_writers_of_one_schedule_wait_for_each_other(desk: Desk) -> None:
    path = f"/schedules/{(await desk.created())['schedule_id']}"

    answers = await asyncio.gather(*(desk.post(f"{path}/{act}") for act in ["pause", "resume"] * 20))

    assert {answer.status_code for answer in answers} == {200}


async def test_a_deleted_schedule_is_gone_and_its_runs_are_not(desk: Desk) -> None:
    schedule_id = (await desk.created())["schedule_id"]
    run_id = (await desk.post(f"/schedules/{schedule_id}/run-now")).json()["run_id"]
    await desk.ended(run_id)

    assert (await desk.delete(f"/schedules/{schedule_id}")).status_code == 204

    assert (await desk.get(f"/schedules/{schedule_id}")).json()["code"] == "schedule.not_found"
    assert (await desk.get(f"/runs/{run_id}")).json()["state"] == "succeeded"
    for act in ("pause", "resume", "unblock", "run-now", "replan"):
        gone = await desk.post(f"/schedules/{schedule_id}/{act}")
        assert (gone.status_code, gone.json()["code"]) == (404, "schedule.not_found"), act
    assert (await desk.delete(f"/schedules/{schedule_id}")).status_code == 404


@pytest.mark.parametrize("schedule_id", ["saaaaaaaaaaaa", "nope", "s%00", "a" * 3000])
async def test_an_unknown_schedule_is_not_found(desk: Desk, schedule_id: str) -> None:
    for answer in (
        await desk.get(f"/schedules/{schedule_id}"),
        await desk.post(f"/schedules/{schedule_id}/pause"),
        await desk.put(f"/schedules/{schedule_id}", definition() | {"revision": 1}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "schedule.not_found")


async def test_a_schedule_of_another_workspace_is_not_found(desk: Desk) -> None:
    theirs = await desk.created()
    other = Desk(desk.http, f"{desk.workspace}-b")
    await other.open()

    for answer in (
        await other.get(f"/schedules/{theirs['schedule_id']}"),
        await other.post(f"/schedules/{theirs['schedule_id']}/pause"),
        await other.post(f"/schedules/{theirs['schedule_id']}/run-now"),
        await other.delete(f"/schedules/{theirs['schedule_id']}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "schedule.not_found")


async def test_a_list_is_filtered_and_paged(desk: Desk) -> None:
    await desk.created(name="b/two")
    await desk.created(name="a/one")
    third = await desk.created(name="c/three")
    await desk.post(f"/schedules/{third['schedule_id']}/pause")

    async def names(**query: Any) -> list[str]:
        found = (await desk.get("/schedules", **query)).json()["items"]
        return [item["definition"]["name"] for item in found]

    assert await names() == ["a/one", "b/two", "c/three"]
    assert await names(condition="paused") == ["c/three"]
    assert await names(q="/T") == ["b/two", "c/three"]
    first = (await desk.get("/schedules", limit=2)).json()
    assert [item["definition"]["name"] for item in first["items"]] == ["a/one", "b/two"]
    assert await names(limit=2, cursor=first["next_cursor"]) == ["c/three"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "0"}, "request.field_invalid"),
        ({"limit": "many"}, "request.field_type"),
        ({"lmit": "5"}, "request.field_unknown"),
        ({"condition": "sleepy"}, "request.field_invalid"),
        ({"cursor": "made-up"}, "page.cursor_invalid"),
        ({"q": "a\0b"}, "request.field_invalid"),
    ],
)
async def test_a_list_refuses_what_it_does_not_know(desk: Desk, query: dict[str, str], code: str) -> None:
    answer = await desk.get("/schedules", **query)

    assert (answer.status_code, answer.json()["code"]) == (400, code), answer.json()
