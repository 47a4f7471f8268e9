"""Manual runs over REST, on real servers: the slot and its rotation, the turn on the lane, and no schedule anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from readmodel.audit import Audit
from readmodel.database import Database
from tests.api.desk import PIPELINE, Desk
from tests.waiting import eventually

pytestmark = pytest.mark.stack

RUNS = f"/pipelines/{PIPELINE}/runs"


async def asked(desk: Desk, body: Any = None, pipeline: str = PIPELINE, **headers: str) -> dict[str, Any]:
    answer = await desk.post(f"/pipelines/{pipeline}/runs", body, **headers)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def ran(desk: Desk, body: Any = None, pipeline: str = PIPELINE) -> dict[str, Any]:
    return await desk.ended((await asked(desk, body, pipeline))["run_id"])


async def in_state(desk: Desk, run_id: str, *states: str) -> None:
    async def look() -> bool:
        return (await desk.get(f"/runs/{run_id}")).json()["state"] in states

    await eventually(look, what=f"{run_id} to be {states}")


async def held(desk: Desk) -> dict[str, Any]:
    """A manual run that goes on until it is cancelled."""
    await desk.release("slow", ["sleep", "600"])
    run = await asked(desk, pipeline="slow")
    await in_state(desk, run["run_id"], "running")
    return run


async def test_it_is_there_at_once_has_a_trail_and_belongs_to_no_schedule(desk: Desk) -> None:
    answer = await desk.post(RUNS)

    assert answer.status_code == 202
    run = answer.json()
    assert (await desk.http.get(answer.headers["Location"])).json()["run_id"] == run["run_id"]
    assert (run["origin"], run["schedule_id"], run["scheduled_for"]) == ("manual", None, None)
    ended = await desk.ended(run["run_id"])
    assert (ended["state"], ended["run_folder"]) == ("succeeded", "iteration-0")
    trail = (await desk.get(f"/runs/{run['run_id']}/trail")).json()["items"]
    assert [row["kind"] for row in trail] == ["recorded", "claimed", "started", "finished"]
    listed = (await desk.get("/runs", origin="manual")).json()["items"]
    assert [one["run_id"] for one in listed] == [run["run_id"]]


async def test_the_next_one_takes_the_slot_and_the_former_is_kept(desk: Desk, storage_behind_api: Path) -> None:
    await desk.release(PIPELINE, ["sh", "-c", "echo $ALMANAC_RUN_ID > mine"])
    first = await ran(desk)
    second = await ran(desk)

    folders = {entry["run_id"]: entry for entry in (await desk.get(RUNS)).json()["items"]}
    assert {entry["kind"] for entry in folders.values()} == {"manual"}
    assert folders[second["run_id"]]["folder"] == "iteration-0"
    assert folders[first["run_id"]]["folder"] == "iteration-1"
    runs = storage_behind_api / desk.workspace / PIPELINE / "runs"
    for run in (first, second):
        assert (runs / folders[run["run_id"]]["folder"] / "work" / "mine").read_text().strip() == run["run_id"]
        evidence = (await desk.get(f"/runs/{run['run_id']}/evidence")).json()
        assert evidence["run"]["quarantined"] == []
        assert {one["identity"]["run_id"] for one in evidence["run"]["documents"]} == {run["run_id"]}


async def test_it_never_touches_a_scheduled_run_s_folder(desk: Desk) -> None:
    schedule = (await desk.created())["schedule_id"]
    scheduled = (await desk.post(f"/schedules/{schedule}/run-now")).json()["run_id"]
    assert (await desk.ended(scheduled))["run_folder"] == "iteration-1-sched"
    await ran(desk)
    await ran(desk)

    folders = {entry["run_id"]: entry["folder"] for entry in (await desk.get(RUNS)).json()["items"]}
    assert folders.pop(scheduled) == "iteration-1-sched"
    assert sorted(folders.values()) == ["iteration-0", "iteration-2"]
    assert (await desk.get(f"/runs/{scheduled}/evidence")).json()["run"]["quarantined"] == []


async def test_every_document_says_that_it_is_a_manual_run_s(desk: Desk, storage_behind_api: Path) -> None:
    run = await ran(desk)

    folder = storage_behind_api / desk.workspace / PIPELINE / "runs" / "iteration-0"
    documents = [json.loads(path.read_text()) for path in folder.rglob("*.json")]
    assert documents
    for document in documents:
        identity = document["identity"]
        assert (identity["run_kind"], identity["trigger_source"]) == ("manual", "manual")
        assert (identity["schedule_id"], identity["plan_revision"]) == (None, None)
        assert (identity["run_id"], identity["run_folder"]) == (run["run_id"], "iteration-0")


@pytest.mark.parametrize("how", ["header", "body"])
async def test_the_same_key_is_the_same_run(desk: Desk, how: str) -> None:
    headers = {"Idempotency_Key": "order-7"} if how == "header" else {}
    body = {"key": "order-7"} if how == "body" else None

    first = await asked(desk, body, **headers)
    await desk.ended(first["run_id"])
    again = await asked(desk, body, **headers)

    assert (again["run_id"], again["state"]) == (first["run_id"], "succeeded")
    assert len((await desk.get("/runs")).json()["items"]) == 1


async def test_parameters_and_bindings_are_its_own(desk: Desk) -> None:
    parameters = [{"name": "day", "type": "DATE", "required": True}, {"name": "count", "type": "INTEGER"}]
    steps = [{"id": "only", "command": ["sh", "-c", "echo $ALMANAC_PARAMETER_DAY $ALMANAC_PARAMETER_COUNT"]}]
    name = "with/parameters"
    await desk.put(f"/pipelines/{name}", {"name": name, "parameters": parameters, "steps": steps})
    await desk.post(f"/pipelines/{name}/release")

    binding = {"day": {"source": "keyword", "name": "TODAY"}}
    body = {"parameters": {"count": 3}, "parameter_bindings": binding, "timezone": "Pacific/Kiritimati"}
    run = await ran(desk, body, name)

    assert run["prepared"]["resolved_parameters"]["count"] == 3
    assert run["reference_zone"] == "Pacific/Kiritimati"
    missing = await desk.post(f"/pipelines/{name}/runs", {"parameters": {"count": 3}})
    assert (missing.status_code, missing.json()["code"]) == (400, "schedule.validation.parameters_invalid")


async def test_it_waits_for_its_turn_and_keeps_a_schedule_waiting(desk: Desk) -> None:
    first = await held(desk)
    second = (await asked(desk, pipeline="slow"))["run_id"]
    await in_state(desk, second, "waiting")
    schedule = await desk.created(payload={"pipeline": "slow", "version": "current"})
    third = (await desk.post(f"/schedules/{schedule['schedule_id']}/run-now")).json()["run_id"]
    await in_state(desk, third, "waiting")

    await desk.post(f"/runs/{first['run_id']}/cancel")
    await in_state(desk, second, "running")
    assert (await desk.get(f"/runs/{third}")).json()["state"] == "waiting"
    await desk.post(f"/runs/{second}/cancel")
    await in_state(desk, third, "running")
    await desk.post(f"/runs/{third}/cancel")
    await desk.ended(third)


async def test_one_that_runs_is_cancelled_and_one_that_waits_is_dropped(desk: Desk) -> None:
    running = (await held(desk))["run_id"]
    waiting = (await asked(desk, {"key": "w"}, "slow"))["run_id"]
    await in_state(desk, waiting, "waiting")

    assert (await desk.post(f"/runs/{waiting}/cancel")).status_code == 202
    dropped = await desk.ended(waiting)
    assert (dropped["state"], dropped["reason"]) == ("skipped", "operator")
    assert (await desk.get(f"/runs/{running}")).json()["state"] == "running"
    assert (await asked(desk, {"key": "w"}, "slow"))["state"] == "skipped"
    assert (await desk.post(f"/runs/{running}/cancel")).status_code == 202
    cancelled = await desk.ended(running)
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "cancelled")


async def test_one_that_fails_blocks_nothing(desk: Desk) -> None:
    await desk.release(PIPELINE, ["false"])
    schedule = (await desk.created())["schedule_id"]
    assert (await ran(desk))["state"] == "failed"

    assert (await desk.get(f"/schedules/{schedule}")).json()["condition"] == "active"
    assert (await ran(desk))["state"] == "failed"


async def test_what_could_never_run_is_refused_and_leaves_no_run(desk: Desk) -> None:
    await desk.put("/pipelines/draft", {"name": "draft", "steps": [{"id": "only", "command": ["true"]}]})
    for path, body, status, code in (
        ("nowhere", None, 404, "pipeline.not_found"),
        ("draft", None, 400, "schedule.validation.target_not_released"),
        (PIPELINE, {"timezone": "CET"}, 400, "schedule.validation.zone_abbreviation"),
        (PIPELINE, {"parameters": {"x": 1}}, 400, "schedule.validation.parameters_invalid"),
        (PIPELINE, {"run_folder": "iteration-7-sched"}, 400, "request.field_unknown"),
        (PIPELINE, {"groups": []}, 400, "request.field_invalid"),
    ):
        refused = await desk.post(f"/pipelines/{path}/runs", body)
        assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
    assert (await desk.get("/runs")).json()["items"] == []


async def test_who_asked_is_audited(desk: Desk, database: Database) -> None:
    run = await asked(desk)
    await desk.ended(run["run_id"])
    [row] = [row for row in (await Audit(database).page(desk.workspace)).items if row.action == "pipeline.run"]
    assert row.subjects == {"pipeline": PIPELINE, "run_id": run["run_id"]}


async def test_a_part_of_a_pipeline_writes_below_its_bound_folder(desk: Desk, storage_behind_api: Path) -> None:
    steps = [{"id": one, "command": ["sh", "-c", "echo $ALMANAC_GROUP"]} for one in ("ask", "answer")]
    groups = [{"name": "linkedin"}, {"name": "mail"}]
    await desk.put("/pipelines/grouped", {"name": "grouped", "steps": steps, "groups": groups})
    await desk.post("/pipelines/grouped/release")
    started = await desk.post("/pipelines/grouped/runs", {"groups": ["mail"], "step": "answer"})
    run = await desk.ended(started.json()["run_id"])
    assert (run["state"], run["run_folder"]) == ("succeeded", "iteration-0")
    assert (run["prepared"]["groups"], run["prepared"]["step"]) == (["mail"], "answer")
    folder = storage_behind_api / desk.workspace / "grouped" / "runs" / "iteration-0"
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["mail"]
    assert [path.name for path in (folder / "mail/steps").iterdir()] == ["answer"]
    logs = (await desk.get(f"/runs/{run['run_id']}/logs")).json()["items"]
    assert {(log["step_id"], log["stream"], log["bytes"]) for log in logs} == {
        ("mail/answer", "stdout", len("mail\n")),
        ("mail/answer", "stderr", 0),
    }
    refused = await desk.post("/pipelines/grouped/runs", {"groups": ["post"]})
    assert (refused.status_code, refused.json()["code"]) == (400, "schedule.validation.group_unknown")
