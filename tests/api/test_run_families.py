"""What a run comes from decides its family, and every document that it writes says whose it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.desk import Desk
from tests.api.test_hooks import deliver

pytestmark = pytest.mark.stack

PIPELINE = "spender"
SPEND = """echo '{"amount": 0.12, "currency": "USD"}' >> "$ALMANAC_COST_FILE"; test "$ALMANAC_PARAMETER_SIZE" = 3"""


async def asked(desk: Desk, kind: str) -> dict[str, Any]:
    if kind == "manual":
        return dict((await desk.post(f"/pipelines/{PIPELINE}/runs")).json())
    payload = {"pipeline": PIPELINE, "version": "current"}
    schedule = (await desk.created(name="spending", payload=payload))["schedule_id"]
    if kind == "schedule":
        return dict((await desk.post(f"/schedules/{schedule}/run-now")).json())
    hook = (await desk.post(f"/schedules/{schedule}/hooks")).json()
    return dict((await deliver(desk, hook)).json())


@pytest.mark.parametrize(
    ("kind", "folder", "trigger"),
    [
        ("schedule", "iteration-1-sched", "run_now"),
        ("hook", "iteration-1-hook", "hook"),
        ("manual", "iteration-0", "manual"),
    ],
)
async def test_every_document_says_whose_it_is(
    desk: Desk, storage_behind_api: Path, kind: str, folder: str, trigger: str
) -> None:
    parameters = [{"name": "size", "type": "INTEGER", "default": 3}]
    steps = [{"id": "only", "command": ["sh", "-c", SPEND]}]
    await desk.put(f"/pipelines/{PIPELINE}", {"name": PIPELINE, "parameters": parameters, "steps": steps})
    await desk.post(f"/pipelines/{PIPELINE}/release")
    run = await desk.ended((await asked(desk, kind))["run_id"])

    assert (run["state"], run["run_folder"]) == ("succeeded", folder)
    root = storage_behind_api / desk.workspace / PIPELINE / "runs" / folder
    documents = {path.name: json.loads(path.read_text()) for path in root.rglob("*.json")}
    assert documents.keys() >= {
        *("run_metadata.json", "identity-1.json", "parameters-1.json", "result-1.json", "cost-1.json")
    }
    for name, document in documents.items():
        identity = dict(document["identity"])
        assert identity.pop("step_id", None) == (None if name == "run_metadata.json" else "only")
        assert identity == {
            "run_kind": kind,
            "run_id": run["run_id"],
            "workspace": desk.workspace,
            "schedule_id": run["schedule_id"],
            "scheduled_for": run["scheduled_for"],
            "trigger_source": trigger,
            "execution_id": run["execution_id"],
            "run_folder": folder,
            "group": None,
            "parent_run_id": None,
            "plan_revision": run["schedule_revision"],
        }
    trail = (await desk.get(f"/runs/{run['run_id']}/trail")).json()["items"]
    assert [row["data"]["run_folder"] for row in trail if row["kind"] == "claimed"] == [folder]
