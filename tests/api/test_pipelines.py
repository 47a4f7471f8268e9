"""Pipelines and workspaces over REST, on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.desk import Desk, pipeline

pytestmark = pytest.mark.stack


async def test_a_saved_pipeline_is_a_draft_until_it_is_released(desk: Desk) -> None:
    saved = await desk.put("/pipelines/a/b", pipeline("a/b", ["true"]))
    assert (saved.status_code, saved.json()["current_version"]) == (200, None)

    released = await desk.post("/pipelines/a/b/release", {"expected_sha256": saved.json()["draft_sha256"]})
    assert released.json()["current_version"] == 1
    assert (await desk.get("/pipelines/a/b")).json() == released.json()

    again = await desk.post("/pipelines/a/b/release")
    assert again.json()["released_versions"] == [1]


async def test_a_draft_that_changed_meanwhile_is_not_released(desk: Desk) -> None:
    seen = (await desk.put("/pipelines/a", pipeline("a", ["true"]))).json()["draft_sha256"]
    await desk.put("/pipelines/a", pipeline("a", ["false"]))

    answer = await desk.post("/pipelines/a/release", {"expected_sha256": seen})

    assert (answer.status_code, answer.json()["code"]) == (409, "pipeline.draft_changed")


async def test_a_pipeline_may_be_called_release(desk: Desk) -> None:
    await desk.release("a", ["true"])
    await desk.release("a/release", ["true"])
    await desk.release("release", ["true"])

    listed = (await desk.get("/pipelines")).json()["items"]

    assert [item["name"] for item in listed] == ["a", "a/release", "daily/report", "release"]
    assert {item["current_version"] for item in listed} == {1}


async def test_pipelines_are_paged_by_name(desk: Desk) -> None:
    for name in ("c", "b", "a"):
        await desk.release(name, ["true"])
    page = (await desk.get("/pipelines", limit=3)).json()

    rest = (await desk.get("/pipelines", limit=3, cursor=page["next_cursor"])).json()

    assert [item["name"] for item in page["items"] + rest["items"]] == ["a", "b", "c", "daily/report"]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (pipeline("b", ["true"]), "request.name_mismatch", "name"),
        (pipeline("a", []), "request.field_invalid", "steps.0.command"),
        ({"name": "a", "steps": [{"id": "x", "command": "ls -l"}]}, "request.field_type", "steps.0.command"),
        ({"name": "a", "steps": [{"id": "x", "command": ["ls"], "needs": ["y"]}]}, None, "steps.0.needs"),
        ({"name": "a", "steps": [{"id": "x", "command": ["a\0b"]}]}, "request.text_unstorable", None),
    ],
)
async def test_a_pipeline_that_could_never_run_is_refused(
    desk: Desk, body: dict[str, Any], code: str | None, field: str | None
) -> None:
    answer = await desk.put("/pipelines/a", body)

    assert answer.status_code == 400
    assert code is None or answer.json()["code"] == code
    assert answer.json().get("field") == field
    assert (await desk.get("/pipelines/a")).status_code == 404


@pytest.mark.parametrize("name", ["no/such", "UPPER", "a%00b", "x" * 3000, "a/../b"])
async def test_an_unknown_pipeline_is_not_found(desk: Desk, name: str) -> None:
    for answer in (await desk.get(f"/pipelines/{name}"), await desk.post(f"/pipelines/{name}/release")):
        assert (answer.status_code, answer.json()["code"]) == (404, "pipeline.not_found")


async def test_an_unknown_workspace_is_not_found_until_it_is_made(desk: Desk) -> None:
    for path in ("/schedules", "/runs", "/pipelines"):
        answer = await Desk(desk.http, f"{desk.workspace}-x").get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "workspace.not_found")
    odd = await desk.http.put("/api/v1/workspaces/Not%20A%20Name")
    assert (odd.status_code, odd.json()["code"]) == (400, "workspace.name_invalid")


async def test_the_default_workspace_needs_no_making(desk: Desk) -> None:
    assert (await desk.http.get("/api/v1/workspaces/default/pipelines")).status_code == 200
