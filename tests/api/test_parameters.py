"""Parameters over REST: declared by a pipeline, given by a schedule, shown by a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.desk import Desk

pytestmark = pytest.mark.stack

DECLARED = [{"name": "day", "type": "DATE", "required": True}, {"name": "limit", "type": "INTEGER", "default": 5}]
TODAY = {"source": "keyword", "name": "TODAY"}


async def declare(desk: Desk, parameters: list[dict[str, Any]]) -> None:
    steps = [
        {"id": "only", "command": ["sh", "-c", 'test "$ALMANAC_PARAMETER_LIMIT" = 7 && test $ALMANAC_PARAMETER_DAY']}
    ]
    saved = await desk.put("/pipelines/asking", {"name": "asking", "parameters": parameters, "steps": steps})
    assert saved.status_code == 200, saved.text
    assert (await desk.post("/pipelines/asking/release")).status_code == 200


def payload(**more: Any) -> dict[str, Any]:
    return {"pipeline": "asking", "version": "current", **more}


GOOD = payload(parameters={"limit": 7}, parameter_bindings={"day": TODAY})


async def test_a_run_gets_what_its_schedule_gives_and_shows_it(desk: Desk) -> None:
    await declare(desk, DECLARED)
    schedule = await desk.created(payload=GOOD)
    assert schedule["definition"]["payload"] == GOOD
    asked = (await desk.post(f"/schedules/{schedule['schedule_id']}/run-now")).json()
    run = await desk.ended(asked["run_id"])
    assert run["state"] == "succeeded"
    resolved = run["prepared"]["resolved_parameters"]
    assert resolved["limit"] == 7
    assert resolved["day"] in {run["reference_time"][:10], run["recorded_at"][:10], run["ended_at"][:10]}


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        ({}, "parameters_invalid", "payload.parameters.day"),
        ({"parameters": {"day": 3}}, "parameters_invalid", "payload.parameters.day"),
        ({"parameters": {"day": "2027-03-14", "x": 1}}, "parameters_invalid", "payload.parameters.x"),
        (
            {"parameters": {"day": "2027-03-14"}, "parameter_bindings": {"day": TODAY}},
            "binding_conflict",
            "payload.parameter_bindings.day",
        ),
        ({"parameter_bindings": {"limit": TODAY}}, "binding_invalid", "payload.parameter_bindings.limit"),
        ({"parameters": {}, "reference_time": "x"}, "payload_invalid", "payload.reference_time"),
    ],
)
async def test_a_payload_that_does_not_fit_is_not_saved(desk: Desk, more: Any, code: str, field: str) -> None:
    await declare(desk, DECLARED)
    answer = await desk.post("/schedules", {**body(), "payload": payload(**more)})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["field"]) == (400, f"schedule.validation.{code}", field)
    assert (await desk.get("/schedules")).json()["items"] == []


async def test_values_that_fit_no_longer_block_until_they_fit_again(desk: Desk) -> None:
    await declare(desk, DECLARED)
    schedule = (await desk.created(payload=GOOD))["schedule_id"]
    await declare(desk, [{"name": "day", "type": "STRING"}, DECLARED[1]])
    asked = (await desk.post(f"/schedules/{schedule}/run-now")).json()
    run = await desk.ended(asked["run_id"])
    assert (run["state"], run["reason"], run["run_folder"]) == ("not_started", "parameters_invalid", None)
    refused = await desk.post(f"/schedules/{schedule}/unblock")
    assert (refused.status_code, refused.json()["code"]) == (400, "schedule.validation.binding_invalid")
    assert (await desk.get(f"/schedules/{schedule}")).json()["blocked"]["reason"] == "parameters_invalid"
    await declare(desk, DECLARED)
    assert (await desk.post(f"/schedules/{schedule}/unblock")).json()["blocked"] is None
    again = (await desk.post(f"/schedules/{schedule}/run-now")).json()
    assert (await desk.ended(again["run_id"]))["state"] == "succeeded"


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ([{"name": "a", "type": "DATE"}, {"name": "A", "type": "DATE"}], "pipeline.validation.parameter_duplicate"),
        ([{"name": "a", "type": "DATE", "default": 1}], "pipeline.validation.parameter_default"),
        ([{"name": "a", "type": "date"}], "request.field_invalid"),
        ([{"name": "1", "type": "DATE"}], "request.field_invalid"),
    ],
)
async def test_a_declaration_that_contradicts_itself_is_not_saved(desk: Desk, parameters: Any, code: str) -> None:
    steps = [{"id": "only", "command": ["true"]}]
    answer = await desk.put("/pipelines/asking", {"name": "asking", "parameters": parameters, "steps": steps})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def body() -> dict[str, Any]:
    return {"name": "daily/report", "cron": "0 9 1 1 *", "timezone": "Europe/Berlin"}
