"""Reviews over REST, on real servers: they bind an exact run, see its files, and make no run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.desk import PIPELINE, Desk, definition

pytestmark = pytest.mark.stack

LOOK = 'echo "$ALMANAC_EVIDENCE_RUN_ID"; cat "$ALMANAC_EVIDENCE_RUN_FOLDER/work/made"; echo "$ALMANAC_RUN_FOLDER"'


def reviewing(which: str, **more: Any) -> dict[str, Any]:
    payload = {"pipeline": PIPELINE, "pipeline_to_run": "look", "select": which}
    return definition(name=f"review {which}", executor="review", payload=payload | more)


@pytest.fixture
async def producing(desk: Desk) -> Desk:
    await desk.release(PIPELINE, ["sh", "-c", "echo made-by-$ALMANAC_RUN_ID > made"])
    await desk.release("look", ["sh", "-c", LOOK])
    return desk


async def produced(desk: Desk) -> dict[str, Any]:
    return await desk.ended((await desk.post(f"/pipelines/{PIPELINE}/runs")).json()["run_id"])


async def reviewed(desk: Desk, body: dict[str, Any]) -> dict[str, Any]:
    created = await desk.post("/schedules", body)
    assert created.status_code == 201, created.text
    asked = await desk.post(f"/schedules/{created.json()['schedule_id']}/run-now")
    return await desk.ended(asked.json()["run_id"])


async def test_a_review_sees_the_latest_run_and_makes_no_run_folder(producing: Desk, storage_behind_api: Path) -> None:
    await produced(producing)
    latest = await produced(producing)
    review = await reviewed(producing, reviewing("latest_succeeded"))
    assert (review["state"], review["run_folder"]) == ("succeeded", None)
    assert review["prepared"]["evidence_run_id"] == latest["run_id"]
    assert review["prepared"]["evidence_run_folder"] == latest["run_folder"]
    printed = (await producing.get(f"/runs/{review['run_id']}/files/steps/only/stdout.log")).text.splitlines()
    own = storage_behind_api / producing.workspace / "look" / "reviews" / review["run_id"]
    assert printed == [latest["run_id"], f"made-by-{latest['run_id']}", str(own)]
    assert not (own.parent.parent / "runs").exists()
    runs = (await producing.get("/pipelines/look/runs")).json()
    assert runs["items"] == []
    chain = (await producing.get(f"/runs/{latest['run_id']}/chain")).json()
    assert [one["run_id"] for one in chain["reviews"]] == [review["run_id"]]
    evidence = (await producing.get(f"/runs/{review['run_id']}/evidence")).json()["run"]
    assert evidence["quarantined"] == []
    assert "result" in {one["kind"] for one in evidence["documents"]}


async def test_a_run_named_by_its_id_is_reviewed_whatever_ended_since(producing: Desk) -> None:
    first = await produced(producing)
    await produced(producing)
    review = await reviewed(producing, reviewing(first["run_id"]))
    assert review["prepared"]["evidence_run_id"] == first["run_id"]
    printed = (await producing.get(f"/runs/{review['run_id']}/files/steps/only/stdout.log")).text.splitlines()
    assert printed[1] == f"made-by-{first['run_id']}"


async def test_without_a_run_there_is_nothing_to_review_and_nothing_is_blocked(producing: Desk) -> None:
    review = await reviewed(producing, reviewing("latest_terminal"))
    assert (review["state"], review["reason"]) == ("not_started", "snapshot_unresolved")
    schedule = (await producing.get(f"/schedules/{review['schedule_id']}")).json()
    assert schedule["blocked"] is None


async def test_a_review_and_its_pipeline_take_turns(producing: Desk) -> None:
    """A review runs a pipeline like every other run of it, so it has that pipeline's lane."""
    await produced(producing)
    review = await reviewed(producing, reviewing("latest_terminal"))
    assert review["target"] == "pipeline:look"


@pytest.mark.parametrize(
    ("payload", "code", "field"),
    [
        ({"pipeline": "nothing"}, "target_not_found", "payload.pipeline"),
        ({"pipeline_to_run": "nothing"}, "target_not_found", "payload.pipeline_to_run"),
        ({"pipeline_to_run": None}, "payload_invalid", "payload.pipeline_to_run"),
        ({"select": "the-last-one"}, "run_not_found", "payload.select"),
        ({"select": ""}, "payload_invalid", "payload.select"),
        ({"version": "current"}, "payload_invalid", "payload.version"),
    ],
)
async def test_a_review_that_could_never_be_is_refused(
    producing: Desk, payload: dict[str, Any], code: str, field: str
) -> None:
    refused = await producing.post("/schedules", reviewing("latest_terminal", **payload))
    assert (refused.status_code, refused.json()["code"]) == (400, f"schedule.validation.{code}")
    assert refused.json()["field"] == field
