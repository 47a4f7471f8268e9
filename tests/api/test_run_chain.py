"""One run from end to end over REST: each link is there, and is this run's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.run import RunState
from readmodel.database import Database
from readmodel.projection import Projector
from tests.api.desk import PIPELINE, Desk
from tests.readmodel.samples import a_run, whole_life

pytestmark = pytest.mark.stack

SPEND = """echo done; echo '{"amount": 0.12, "currency": "USD"}' >> "$ALMANAC_COST_FILE" """


async def test_a_run_is_followed_from_its_request_to_its_review(
    desk: Desk, database: Database, storage_behind_api: Path
) -> None:
    await desk.release(PIPELINE, ["sh", "-c", SPEND])
    schedule = (await desk.created())["schedule_id"]
    asked = (await desk.post(f"/schedules/{schedule}/run-now")).json()
    run = await desk.ended(asked["run_id"])
    folder = storage_behind_api / desk.workspace / PIPELINE / "runs" / run["run_folder"]
    scored = storage_behind_api / desk.workspace / PIPELINE / "evaluation" / "runs" / run["run_folder"]
    result = json.loads((folder / "steps" / "only" / "result-1.json").read_text())
    scored.mkdir(parents=True)
    (scored / "score-1.json").write_text(json.dumps(result | {"kind": "score", "body": {"value": 0.9}}))
    (folder / "foreign.json").write_text(json.dumps(result | {"identity": result["identity"] | {"run_id": "another"}}))
    for number, evidence_run_id in enumerate((run["run_id"], "another")):
        review = a_run(f"review-{desk.workspace}", number, workspace=desk.workspace)
        frozen = review.model_copy(update={"prepared": {"evidence_run_id": evidence_run_id}})
        await Projector(database).project(whole_life(frozen))

    chain = (await desk.get(f"/runs/{run['run_id']}/chain")).json()

    assert chain["run"] == run
    assert chain["run_folder"] == run["run_folder"] == "iteration-1-sched"
    assert {log["path"]: log["bytes"] for log in chain["logs"]} == {
        "steps/only/stdout.log": 5,
        "steps/only/stderr.log": 0,
    }
    assert [(step["step_id"], step["status"]) for step in chain["steps"]] == [("only", "succeeded")]
    assert chain["cost_totals"] == {"USD": "0.12"}
    assert [score["body"] for score in chain["scores"]] == [{"value": 0.9}]
    identities = [one["identity"] for one in chain["steps"] + chain["scores"]]
    assert {one["execution_id"] for one in identities} == {run["execution_id"]}
    assert chain["quarantined"] == 1
    assert [(review["schedule_id"], review["state"]) for review in chain["reviews"]] == [
        (f"review-{desk.workspace}", RunState.SUCCEEDED)
    ]


async def test_a_run_without_a_folder_has_a_short_chain(desk: Desk) -> None:
    await desk.release("held", ["sleep", "600"])
    running = (await desk.post("/pipelines/held/runs")).json()["run_id"]
    waiting = (await desk.post("/pipelines/held/runs")).json()["run_id"]

    chain = (await desk.get(f"/runs/{waiting}/chain")).json()

    assert chain["run"]["run_id"] == waiting
    assert (chain["run_folder"], chain["logs"], chain["steps"], chain["scores"]) == (None, [], [], [])
    for run_id in (waiting, running):
        await desk.post(f"/runs/{run_id}/cancel")
        await desk.ended(run_id)


async def test_another_workspace_has_no_chain_of_it(desk: Desk) -> None:
    run_id = (await desk.post(f"/pipelines/{PIPELINE}/runs")).json()["run_id"]
    await desk.ended(run_id)
    other = Desk(desk.http, f"{desk.workspace}-b")
    await other.open()
    assert (await other.get(f"/runs/{run_id}/chain")).json()["code"] == "run.not_found"
