"""The index: what the folders say, whoever writes it, and the latest run by its record and not by its name."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.identity import RunIdentity
from domain.run import Origin, RunState
from evidence import documents, folders, index
from evidence.documents import RunMetadata
from evidence.index import Entry

AT = datetime(2027, 3, 14, 7, tzinfo=UTC)


def metadata(run_id: str, folder: str, began: int = 0, status: RunState | None = None, **more: Any) -> RunMetadata:
    identity = RunIdentity.model_validate(
        {
            "run_kind": "schedule",
            "run_id": run_id,
            "workspace": "acme",
            "schedule_id": "s1",
            "scheduled_for": AT,
            "trigger_source": Origin.CRON,
            "execution_id": f"e-{run_id}",
            "run_folder": folder,
            "plan_revision": 3,
            **more,
        }
    )
    at = AT + timedelta(minutes=began)
    return RunMetadata(
        identity=identity, created_at=at, started_at=at, completed_at=at if status else None, status=status
    )


def note(runs: Path, run_id: str, folder: str, began: int = 0, status: RunState | None = None, **more: Any) -> None:
    index.record(runs, folder, metadata(run_id, folder, began, status, **more))


def published(runs: Path) -> dict[str, Any]:
    found = json.loads((runs / index.NAME).read_text())
    assert isinstance(found, dict)
    return found


def test_the_index_is_a_typed_projection(tmp_path: Path) -> None:
    note(tmp_path, "a", "iteration-1-sched", status=RunState.FAILED)
    assert published(tmp_path)["version"] == 2
    assert index.read(tmp_path).runs == (
        Entry(
            folder="iteration-1-sched",
            kind="schedule",
            run_id="a",
            execution_id="e-a",
            schedule_id="s1",
            scheduled_for=AT,
            trigger_source=Origin.CRON,
            created_at=AT,
            started_at=AT,
            completed_at=AT,
            status=RunState.FAILED,
        ),
    )


def test_recording_again_writes_nothing(tmp_path: Path) -> None:
    note(tmp_path, "a", "iteration-1-sched")
    before = index.read(tmp_path)
    note(tmp_path, "a", "iteration-1-sched")
    assert index.read(tmp_path) == before


def test_the_latest_run_is_chosen_by_its_record(tmp_path: Path) -> None:
    note(tmp_path, "late", "iteration-2-sched", began=9, status=RunState.FAILED)
    note(tmp_path, "early", "iteration-7-sched", began=1, status=RunState.SUCCEEDED)
    note(tmp_path, "running", "iteration-3-hook", began=5, run_kind="hook")
    note(tmp_path, "manual", "iteration-0", began=0, status=RunState.SUCCEEDED, run_kind="manual")
    chosen = index.latest(index.read(tmp_path).runs)
    assert chosen.current is not None
    assert chosen.latest is not None
    assert chosen.latest_succeeded is not None
    assert [chosen.current.run_id, chosen.latest.run_id, chosen.latest_succeeded.run_id] == ["running", "late", "early"]


def test_a_pipeline_without_runs_has_an_empty_index(tmp_path: Path) -> None:
    assert index.read(tmp_path / "runs").runs == ()
    assert index.latest(()) == index.Latest(current=None, latest=None, latest_succeeded=None)


def test_the_slot_is_the_newest_manual_runs(tmp_path: Path) -> None:
    runs = tmp_path / "acme" / "close" / "runs"
    for began, run_id in enumerate("ab"):
        note(runs, run_id, folders.take_slot(tmp_path, "acme", "close", run_id), began, run_kind="manual")
    assert [(entry.run_id, entry.folder) for entry in index.read(runs).runs] == [
        ("a", "iteration-1"),
        ("b", "iteration-0"),
    ]


VERSIONS_1 = [
    {"version": 1, "runs": ["iteration-2", "iteration-0"]},
    {"runs": [{"folder": "iteration-2"}, {"name": "iteration-0"}, {"folder": "../x"}, 7]},
    {"runs": {"iteration-2": {}, "iteration-0": None, "notes": {}}},
]


@pytest.mark.parametrize("content", VERSIONS_1)
def test_version_1_is_read_and_nothing_is_made_up(tmp_path: Path, content: object) -> None:
    (tmp_path / index.NAME).write_text(json.dumps(content))
    assert {entry.folder: entry.kind for entry in index.read(tmp_path).runs} == {
        "iteration-0": "unknown_legacy",
        "iteration-2": "unknown_legacy",
    }


def test_the_times_of_version_1_are_kept_where_they_are_times(tmp_path: Path) -> None:
    facts = {"started_at": AT.isoformat(), "completed_at": "2027-03-14 09:00", "status": "fine", "run_id": "x"}
    (tmp_path / index.NAME).write_text(json.dumps({"runs": {"iteration-2": facts}}))
    assert index.read(tmp_path).runs == (Entry(folder="iteration-2", kind="unknown_legacy", started_at=AT),)


def test_version_1_becomes_version_2_with_the_next_run(tmp_path: Path) -> None:
    (tmp_path / index.NAME).write_text(json.dumps(VERSIONS_1[0]))
    note(tmp_path, "a", "iteration-3-sched")
    assert [run["folder"] for run in published(tmp_path)["runs"]] == ["iteration-0", "iteration-2", "iteration-3-sched"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"version": 3, "runs": []}', b'{"version": 2}x'])
def test_a_damaged_index_is_made_anew_from_the_folders(tmp_path: Path, content: bytes) -> None:
    known = metadata("a", "iteration-1-sched", status=RunState.SUCCEEDED)
    (tmp_path / "iteration-1-sched").mkdir()
    (tmp_path / "iteration-1-sched" / documents.METADATA).write_text(known.model_dump_json())
    (tmp_path / "iteration-2").mkdir()
    (tmp_path / index.NAME).write_bytes(content)
    assert [(entry.folder, entry.kind) for entry in index.read(tmp_path).runs] == [
        ("iteration-2", "unknown_legacy"),
        ("iteration-1-sched", "schedule"),
    ]
    note(tmp_path, "b", "iteration-3-sched", began=1)
    assert [run.get("run_id") for run in published(tmp_path)["runs"]] == [None, "a", "b"]


def test_a_damaged_revision_does_not_stop_the_next(tmp_path: Path) -> None:
    note(tmp_path, "a", "iteration-1-sched")
    (tmp_path / index.REVISIONS / "2").write_text("")
    note(tmp_path, "b", "iteration-2-sched", began=1)
    assert [entry.run_id for entry in index.read(tmp_path).runs] == ["a", "b"]
    assert index.read(tmp_path).revision == 3


def note_many(runs: Path, writer: int) -> None:
    for number in range(40):
        note(runs, f"{writer}-{number}", f"iteration-{writer * 100 + number + 1}-sched")


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(note_many, itertools.repeat(tmp_path, 4), range(4)))
    expected = {f"{writer}-{number}" for writer in range(4) for number in range(40)}
    assert {entry.run_id for entry in index.read(tmp_path).runs} == expected
    assert {run["run_id"] for run in published(tmp_path)["runs"]} == expected
    assert len(os.listdir(tmp_path / index.REVISIONS)) <= index.KEPT_REVISIONS + 1
    assert sorted(os.listdir(tmp_path)) == [index.REVISIONS, index.NAME]


NOTE_FOR_EVER = """
import itertools, pathlib, sys
from tests.evidence.test_index import note
for number in itertools.count(int(sys.argv[2])):
    note(pathlib.Path(sys.argv[1]), str(number), f"iteration-{number + 1}-sched")
    print(number, flush=True)
"""


def test_killed_writers_lose_nothing_that_was_noted(tmp_path: Path) -> None:
    reached = 0
    for lines in range(1, 9):
        with subprocess.Popen(
            [sys.executable, "-c", NOTE_FOR_EVER, str(tmp_path), str(reached)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as writer:
            assert writer.stdout is not None
            for line in itertools.islice(writer.stdout, lines):
                reached = int(line) + 1
            writer.kill()
        noted = {entry.run_id for entry in index.read(tmp_path).runs}
        assert {str(number) for number in range(reached)} <= noted
    note(tmp_path, "last", "iteration-9999-sched")
    assert {str(number) for number in range(reached)} <= {run["run_id"] for run in published(tmp_path)["runs"]}
