"""A tree from before runs had identities, over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.desk import PIPELINE, Desk
from tests.evidence import legacy

pytestmark = pytest.mark.stack


@pytest.fixture
def runs(storage_behind_api: Path, desk: Desk) -> Path:
    return legacy.plant(storage_behind_api / desk.workspace / PIPELINE)


async def listed(desk: Desk) -> dict[str, Any]:
    return dict((await desk.get(f"/pipelines/{PIPELINE}/runs")).json())


async def test_its_folders_are_listed_and_none_is_a_run(desk: Desk, runs: Path) -> None:
    listing = await listed(desk)
    assert {item["folder"] for item in listing["items"]} == set(legacy.FOLDERS)
    assert {item["kind"] for item in listing["items"]} == {"unknown_legacy"}
    assert {item["run_id"] for item in listing["items"]} == {None}
    assert (await desk.get("/runs")).json()["items"] == []


async def test_its_evidence_is_read_by_folder(desk: Desk, runs: Path) -> None:
    found = (await desk.get(f"/pipelines/{PIPELINE}/runs/iteration-3/evidence")).json()
    assert {one["standing"] for one in found["run"]["documents"]} == {"unknown_legacy"}
    assert {one["path"] for one in found["run"]["quarantined"]} == {"half.json", "odd.json"}
    assert (found["costs"], found["scores"]) == ({}, {})
    paired = (await desk.get(f"/pipelines/{PIPELINE}/runs/iteration-0/evidence")).json()
    assert [one["body"] for one in paired["evaluation"]["documents"]] == [{"score": 0.7}]


@pytest.mark.parametrize("folder", ["iteration-99", "iteration-1", "backup", "..", ".numbers", "iteration-0%00"])
async def test_what_is_no_run_folder_is_not_found(desk: Desk, runs: Path, folder: str) -> None:
    answer = await desk.get(f"/pipelines/{PIPELINE}/runs/{folder}/evidence")
    assert answer.status_code == 404


async def test_a_manual_run_leaves_it_readable(desk: Desk, runs: Path) -> None:
    accepted = await desk.post(f"/pipelines/{PIPELINE}/runs")
    await desk.ended(accepted.json()["run_id"])

    items = (await listed(desk))["items"]
    assert len(items) == len(legacy.FOLDERS) + 1
    folders = {item["folder"]: item for item in items}
    assert folders.pop("iteration-0")["run_id"] == accepted.json()["run_id"]
    for folder in folders:
        found = (await desk.get(f"/pipelines/{PIPELINE}/runs/{folder}/evidence")).json()
        assert {one["standing"] for one in found["run"]["documents"]} == {"unknown_legacy"}
