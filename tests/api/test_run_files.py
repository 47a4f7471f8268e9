"""A run's files and evidence, and a pipeline's runs, over REST, on real servers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.desk import Desk
from tests.waiting import eventually

pytestmark = pytest.mark.stack

SCRIPT = "printf 0123456789 > digits; ln -s /etc/hostname outside; echo done"


@pytest.fixture
async def run(desk: Desk) -> dict[str, Any]:
    """A run that has ended."""
    await desk.release("writer", ["sh", "-c", SCRIPT])
    schedule = await desk.created(name="writer", payload={"pipeline": "writer", "version": "current"})
    accepted = await desk.post(f"/schedules/{schedule['schedule_id']}/run-now")
    return dict(await desk.ended(accepted.json()["run_id"]))


@pytest.fixture
def folder(storage_behind_api: Path, desk: Desk, run: dict[str, Any]) -> Path:
    return storage_behind_api / desk.workspace / "writer" / "runs" / str(run["run_folder"])


async def file(desk: Desk, run: dict[str, Any], path: str, **headers: str) -> httpx.Response:
    return await desk.http.get(f"{desk.root}/runs/{run['run_id']}/files/{path}", headers=headers)


async def test_the_files_of_a_run_are_listed_and_read(desk: Desk, run: dict[str, Any]) -> None:
    listing = (await desk.get(f"/runs/{run['run_id']}/files")).json()
    assert listing["run_folder"] == run["run_folder"]
    readable = {item["path"]: item["readable"] for item in listing["items"]}
    assert readable["work/digits"] is True
    assert readable["work/outside"] is False
    assert "steps/only/result-1.json" in readable
    whole = await file(desk, run, "work/digits")
    assert (whole.status_code, whole.text) == (200, "0123456789")
    assert whole.headers["Content-Length"] == "10"
    assert (await file(desk, run, "steps/only/stdout.log")).text == "done\n"


async def test_what_each_step_printed_is_listed_and_no_link_with_it(
    desk: Desk, run: dict[str, Any], folder: Path
) -> None:
    (folder / "steps" / "only" / "stdout-2.log").symlink_to("/etc/hostname")
    (folder / "steps" / "elsewhere").symlink_to("/etc")
    logs = (await desk.get(f"/runs/{run['run_id']}/logs")).json()
    assert logs["run_folder"] == run["run_folder"]
    assert [(log["step_id"], log["attempt"], log["stream"], log["path"], log["bytes"]) for log in logs["items"]] == [
        ("only", 1, "stderr", "steps/only/stderr.log", 0),
        ("only", 1, "stdout", "steps/only/stdout.log", 5),
    ]
    assert logs["items"][0]["started_at"] <= run["ended_at"]


@pytest.mark.parametrize(
    ("asked", "status", "text", "told"),
    [
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=7-", 206, "789", "bytes 7-9/10"),
        ("bytes=-2", 206, "89", "bytes 8-9/10"),
        ("bytes=0-99", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=5-2", 200, "0123456789", None),
        ("bytes=0-1,3-4", 200, "0123456789", None),
        ("lines=1-2", 200, "0123456789", None),
    ],
)
async def test_a_range_of_a_file(
    desk: Desk, run: dict[str, Any], asked: str, status: int, text: str, told: str | None
) -> None:
    part = await file(desk, run, "work/digits", Range=asked)
    assert (part.status_code, part.text, part.headers.get("Content-Range")) == (status, text, told)


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=-0", "bytes=99-100"])
async def test_a_range_that_is_not_there_is_refused(desk: Desk, run: dict[str, Any], asked: str) -> None:
    refused = await file(desk, run, "work/digits", Range=asked)
    assert (refused.status_code, refused.json()["code"]) == (416, "run.file_range")
    assert refused.headers["Content-Range"] == "bytes */10"


@pytest.mark.parametrize(
    "path",
    [
        *("work/outside", "absent", "work", "..%2f..%2f..%2f", "work/%2e%2e/%2e%2e/run_index.json"),
        *("%2e%2e/run_index.json", "%2fetc%2fhostname", "work%00digits", "work//digits"),
    ],
)
async def test_nothing_outside_the_folder_is_read(desk: Desk, run: dict[str, Any], path: str) -> None:
    refused = await file(desk, run, path)
    assert (refused.status_code, refused.json()["code"]) == (404, "run.file_not_found")


async def test_evidence_shows_what_contradicts_apart(desk: Desk, run: dict[str, Any], folder: Path) -> None:
    result = json.loads((folder / "steps" / "only" / "result-1.json").read_text())
    result["identity"]["execution_id"] = "somebody-elses"
    (folder / "injected-1.json").write_text(json.dumps(result))
    (folder / "old.json").write_text("{}")

    evidence = (await desk.get(f"/runs/{run['run_id']}/evidence")).json()

    assert evidence["run"]["metadata"]["identity"]["run_id"] == run["run_id"]
    standing = {document["path"]: document["standing"] for document in evidence["run"]["documents"]}
    assert standing["steps/only/result-1.json"] == "own"
    assert standing["old.json"] == "unknown_legacy"
    [foreign] = evidence["run"]["quarantined"]
    assert foreign["path"] == "injected-1.json"
    assert foreign["why"].startswith("Its execution_id is somebody-elses")


async def test_costs_and_scores_are_those_of_the_runs_execution(desk: Desk, run: dict[str, Any], folder: Path) -> None:
    document = json.loads((folder / "steps" / "only" / "result-1.json").read_text())
    paired = folder.parents[1] / "evaluation" / "runs" / folder.name
    paired.mkdir(parents=True)
    (folder / "cost-1.json").write_text(json.dumps(document | {"kind": "cost", "body": {"usd": "0.10"}}))
    (paired / "score-1.json").write_text(json.dumps(document | {"kind": "score", "body": {"value": 7}}))
    document["identity"]["execution_id"] = "somebody-elses"
    (paired / "score-2.json").write_text(json.dumps(document | {"kind": "score", "body": {"value": 9}}))

    evidence = (await desk.get(f"/runs/{run['run_id']}/evidence")).json()

    assert [cost["body"] for cost in evidence["costs"][run["execution_id"]]] == [{"usd": "0.10"}]
    assert [score["body"] for score in evidence["scores"][run["execution_id"]]] == [{"value": 7}]
    assert [document["path"] for document in evidence["evaluation"]["quarantined"]] == ["score-2.json"]


SPEND = """echo '{"amount": 0.12, "currency": "USD"}' >> "$ALMANAC_COST_FILE" """


async def test_costs_are_added_up_for_an_execution_and_no_run_inherits_them(
    desk: Desk, storage_behind_api: Path
) -> None:
    await desk.release("spender", ["sh", "-c", SPEND])
    ran = []
    for _ in range(2):
        accepted = await desk.post("/pipelines/spender/runs")
        ran.append(await desk.ended(accepted.json()["run_id"]))
    runs = storage_behind_api / desk.workspace / "spender" / "runs"
    document = Path("steps") / "only" / "cost-1.json"
    (runs / "iteration-0" / "cost-7.json").write_bytes((runs / "iteration-1" / document).read_bytes())

    for run in ran:
        evidence = (await desk.get(f"/runs/{run['run_id']}/evidence")).json()
        assert evidence["cost_totals"] == {run["execution_id"]: {"USD": "0.12"}}
        assert [one["path"] for one in evidence["costs"][run["execution_id"]]] == [str(document)]
        foreign = ["cost-7.json"] if run is ran[1] else []
        assert [one["path"] for one in evidence["run"]["quarantined"]] == foreign


async def test_another_workspace_finds_neither(desk: Desk, run: dict[str, Any]) -> None:
    other = Desk(desk.http, f"{desk.workspace}-b")
    await other.open()
    for path in ("files", "files/work/digits", "evidence"):
        refused = await other.get(f"/runs/{run['run_id']}/{path}")
        assert (refused.status_code, refused.json()["code"]) == (404, "run.not_found")


async def test_a_folder_that_is_gone_is_told(desk: Desk, run: dict[str, Any], folder: Path) -> None:
    os.rename(folder, folder.with_name("elsewhere"))
    refused = await desk.get(f"/runs/{run['run_id']}/files")
    assert (refused.status_code, refused.json()["code"]) == (404, "run.folder_missing")


async def test_the_runs_of_a_pipeline_and_which_is_the_latest(desk: Desk, run: dict[str, Any]) -> None:
    schedule = run["schedule_id"]
    accepted = await desk.post(f"/schedules/{schedule}/run-now")
    newer = await desk.ended(accepted.json()["run_id"])

    found = (await desk.get("/pipelines/writer/runs")).json()

    assert [entry["run_id"] for entry in found["items"]] == [newer["run_id"], run["run_id"]]
    assert found["current"] is None
    assert found["latest"]["run_id"] == found["latest_succeeded"]["run_id"] == newer["run_id"]
    assert found["latest"]["folder"] == newer["run_folder"]
    first = (await desk.get("/pipelines/writer/runs", limit=1)).json()
    second = (await desk.get("/pipelines/writer/runs", limit=1, cursor=first["next_cursor"])).json()
    assert [entry["run_id"] for entry in first["items"] + second["items"]] == [newer["run_id"], run["run_id"]]
    assert second["latest"]["run_id"] == newer["run_id"]
    assert second["next_cursor"] is None
    assert (await desk.get("/pipelines/writer/runs", kind="manual")).json()["items"] == []


async def test_a_pipeline_that_has_not_run_has_no_runs(desk: Desk) -> None:
    found = (await desk.get("/pipelines/daily/report/runs")).json()
    assert found == {"current": None, "latest": None, "latest_succeeded": None, "items": [], "next_cursor": None}
    assert (await desk.get("/pipelines/nobodys/runs")).status_code == 404


async def test_older_runs_make_room_and_say_so(desk: Desk, storage_behind_api: Path) -> None:
    body = {"name": "tidy", "steps": [{"id": "only", "command": ["true"]}], "run_retention_count": 1}
    assert (await desk.put("/pipelines/tidy", body)).status_code == 200
    assert (await desk.post("/pipelines/tidy/release")).status_code == 200
    schedule = (await desk.created(name="tidy", payload={"pipeline": "tidy", "version": "current"}))["schedule_id"]
    ran = []
    for _ in range(3):
        accepted = await desk.post(f"/schedules/{schedule}/run-now")
        ran.append((await desk.ended(accepted.json()["run_id"]))["run_id"])

    async def expired() -> httpx.Response | None:
        answer = await desk.get(f"/runs/{ran[0]}/files")
        return answer if answer.json().get("code") == "run.files_expired" else None

    refused = await eventually(expired, what="the first run to make room")
    assert refused.status_code == 404
    assert (await desk.get(f"/runs/{ran[0]}")).json()["files_expired_at"]
    assert (await desk.get(f"/runs/{ran[2]}/files")).status_code == 200
    assert not (storage_behind_api / desk.workspace / "tidy" / "runs" / "iteration-1-sched").exists()
