"""Which version of a pipeline runs: the pointer moved to a release or a draft, a draft edited, a pipeline discarded."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from evidence import folders
from tests.api.desk import Desk, definition, pipeline

pytestmark = pytest.mark.stack

NAME = "a/b"


def saying(word: str) -> dict[str, Any]:
    return pipeline(NAME, ["sh", "-c", f"echo {word}"])


@pytest.fixture
async def versioned(desk: Desk) -> Desk:
    """Two released versions, the second current, and a draft that is a third."""
    for word in ("one", "two"):
        await desk.put(f"/pipelines/{NAME}", saying(word))
        await desk.post(f"/pipelines/{NAME}/release")
    await desk.put(f"/pipelines/{NAME}", saying("draft"))
    return desk


async def develop(desk: Desk) -> None:
    answer = await desk.http.put(desk.root, json={"posture": "development"})
    assert (answer.status_code, answer.json()["posture"]) == (200, "development")


async def point(desk: Desk, version: Any, **more: Any) -> Any:
    return await desk.post(f"/pipelines/{NAME}/current", {"version": version, **more})


async def ran(desk: Desk) -> tuple[Any, str]:
    """Which version a run of it froze, and what it said."""
    run = await desk.ended((await desk.post(f"/pipelines/{NAME}/runs")).json()["run_id"])
    assert run["state"] == "succeeded", run
    said = await desk.get(f"/runs/{run['run_id']}/files/steps/only/stdout.log")
    return run["prepared"]["version"], said.text.strip()


async def test_it_is_moved_back_to_a_version_and_runs_follow(versioned: Desk) -> None:
    assert await ran(versioned) == (2, "two")
    moved = await point(versioned, 1)
    assert (moved.status_code, moved.json()["current_version"]) == (200, 1)
    assert await ran(versioned) == (1, "one")
    listed = (await versioned.get(f"/pipelines/{NAME}/versions")).json()["items"]
    assert [(one["version"], one["is_current"]) for one in listed] == [(2, False), (1, True)]
    first = (await versioned.get(f"/pipelines/{NAME}/versions/1")).json()
    assert first["definition"]["steps"][0]["command"] == ["sh", "-c", "echo one"]


async def test_a_draft_is_run_only_where_the_workspace_develops(versioned: Desk) -> None:
    refused = await point(versioned, "draft")
    assert (refused.status_code, refused.json()["code"]) == (409, "pipeline.draft_not_allowed")
    await develop(versioned)
    assert (await point(versioned, "draft")).json()["current_version"] == "draft"
    assert await ran(versioned) == ("draft", "draft")
    await versioned.put(f"/pipelines/{NAME}", saying("edited"))
    assert await ran(versioned) == ("draft", "edited")


async def test_a_workspace_leaves_development_only_without_drafts_that_run(versioned: Desk) -> None:
    await develop(versioned)
    await point(versioned, "draft")
    refused = await versioned.http.put(versioned.root, json={"posture": "production"})
    assert (refused.status_code, refused.json()["code"]) == (409, "workspace.drafts_current")
    assert NAME in refused.json()["detail"]
    assert (await versioned.http.get(versioned.root)).json()["posture"] == "development"
    released = await versioned.post(f"/pipelines/{NAME}/release")
    assert released.json()["current_version"] == 3
    assert (await versioned.http.put(versioned.root, json={"posture": "production"})).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"version": 3}, 404, "pipeline.version_not_found"),
        ({"version": 0}, 404, "pipeline.version_not_found"),
        ({"version": 1, "expected": 1}, 409, "pipeline.current_changed"),
        ({"version": "latest"}, 400, None),
        ({"version": None}, 400, None),
        ({"version": True}, 400, None),
        ({}, 400, None),
    ],
    ids=str,
)
async def test_a_pointer_that_can_not_be_moved_stays(
    versioned: Desk, body: dict[str, Any], status: int, code: str | None
) -> None:
    refused = await versioned.post(f"/pipelines/{NAME}/current", body)
    assert refused.status_code == status, refused.text
    assert code is None or refused.json()["code"] == code
    assert (await versioned.get(f"/pipelines/{NAME}")).json()["current_version"] == 2


async def test_a_draft_that_is_edited_before_it_starts_starts_nothing_and_blocks_nothing(
    versioned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is held where its folder is bound: after it was frozen and before it is claimed."""
    bound, go_on = threading.Event(), threading.Event()
    allocate = folders.allocate

    def held(*arguments: Any, **named: Any) -> str:
        name = allocate(*arguments, **named)
        bound.set()
        go_on.wait(60)
        return name

    await develop(versioned)
    await point(versioned, "draft")
    payload = {"pipeline": NAME, "version": "current"}
    schedule = (await versioned.post("/schedules", definition(name="s", payload=payload))).json()
    monkeypatch.setattr(folders, "allocate", held)
    asked = (await versioned.post(f"/schedules/{schedule['schedule_id']}/run-now")).json()
    try:
        assert await asyncio.to_thread(bound.wait, 60)
        await versioned.put(f"/pipelines/{NAME}", saying("edited"))
    finally:
        go_on.set()
    run = await versioned.ended(asked["run_id"])
    assert (run["state"], run["reason"], run["execution_id"]) == ("not_started", "version_changed", None)
    assert (await versioned.get(f"/schedules/{schedule['schedule_id']}")).json()["blocked"] is None


async def test_a_discarded_pipeline_is_gone_and_blocks_what_runs_it(versioned: Desk) -> None:
    payload = {"pipeline": NAME, "version": "current"}
    schedule = (await versioned.post("/schedules", definition(name="s", payload=payload))).json()
    first = await versioned.post(f"/schedules/{schedule['schedule_id']}/run-now")
    before = await versioned.ended(first.json()["run_id"])
    by_target = (await versioned.get("/schedules", target=f"pipeline:{NAME}")).json()["items"]
    assert [one["schedule_id"] for one in by_target] == [schedule["schedule_id"]]

    assert (await versioned.delete(f"/pipelines/{NAME}")).status_code == 204
    assert (await versioned.get(f"/pipelines/{NAME}")).status_code == 404
    assert (await versioned.delete(f"/pipelines/{NAME}")).status_code == 404
    asked = await versioned.post(f"/schedules/{schedule['schedule_id']}/run-now")
    run = await versioned.ended(asked.json()["run_id"])
    assert (run["state"], run["reason"]) == ("not_started", "target_not_found")
    assert (await versioned.get(f"/schedules/{schedule['schedule_id']}")).json()["blocked"]["run_id"] == run["run_id"]
    assert (await versioned.get(f"/runs/{before['run_id']}/files/steps/only/stdout.log")).text == "two\n"

    again = (await versioned.put(f"/pipelines/{NAME}", saying("new"))).json()
    assert (again["current_version"], again["released_versions"]) == (None, [])
    assert again["pipeline_id"] != before["prepared"]["pipeline_id"]
