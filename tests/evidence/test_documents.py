"""Documents: each says whose it is, none is overwritten, none is ever half there."""

from __future__ import annotations

import itertools
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.identity import RunIdentity
from domain.run import Origin, RunState
from evidence import documents

CREATED = datetime(2027, 3, 14, 7, tzinfo=UTC)

IDENTITY = RunIdentity(
    run_kind="schedule",
    run_id="s1-20270314T070000Z",
    workspace="acme",
    schedule_id="s1",
    scheduled_for=CREATED,
    trigger_source=Origin.CRON,
    execution_id="e1",
    run_folder="iteration-7-sched",
    plan_revision=3,
)


def write_many(folder: Path, writer: int) -> list[str]:
    return [documents.write(folder, IDENTITY, "result", {"writer": writer, "index": n}).name for n in range(25)]


def test_a_document_carries_the_identity(tmp_path: Path) -> None:
    path = documents.write(tmp_path, IDENTITY, "result", {"rows": 3}, step_id="load")
    document = json.loads(path.read_text())
    assert path == tmp_path / "steps" / "load" / "result-1.json"
    assert document["kind"] == "result"
    assert document["body"] == {"rows": 3}
    assert document["identity"].pop("step_id") == "load"
    assert RunIdentity.model_validate(document["identity"]) == IDENTITY
    assert datetime.fromisoformat(document["created_at"]).utcoffset() == timedelta(0)


def test_a_second_attempt_is_a_document_of_its_own(tmp_path: Path) -> None:
    first = documents.write(tmp_path, IDENTITY, "result", {"attempt": 1})
    before = first.read_bytes()
    second = documents.write(tmp_path, IDENTITY, "result", {"attempt": 2})
    assert (first.name, second.name) == ("result-1.json", "result-2.json")
    assert first.read_bytes() == before
    assert json.loads(second.read_text())["body"] == {"attempt": 2}


def test_writers_at_the_same_time_overwrite_nothing(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        names = [name for names in pool.map(write_many, itertools.repeat(tmp_path, 4), range(4)) for name in names]
    bodies = [json.loads((tmp_path / name).read_text())["body"] for name in names]
    assert sorted((body["writer"], body["index"]) for body in bodies) == [
        (writer, index) for writer in range(4) for index in range(25)
    ]
    assert {path.name for path in tmp_path.iterdir()} == set(names)


def test_a_document_can_not_be_changed_by_chance(tmp_path: Path) -> None:
    assert documents.write(tmp_path, IDENTITY, "result", {}).stat().st_mode & 0o222 == 0


@pytest.mark.parametrize("kind", ["", "../x", "a/b", "a-1", "run metadata"])
def test_a_kind_is_a_word(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="not a kind of document"):
        documents.write(tmp_path, IDENTITY, kind, {})
    assert not list(tmp_path.iterdir())


def test_the_times_of_a_run_become_known_one_by_one(tmp_path: Path) -> None:
    assert documents.read_metadata(tmp_path) is None
    created = documents.record_metadata(tmp_path, IDENTITY, CREATED)
    assert (created.created_at, created.started_at, created.completed_at, created.status) == (CREATED, None, None, None)

    started = CREATED + timedelta(seconds=1)
    documents.record_metadata(tmp_path, IDENTITY, started, started=True)
    ended = CREATED + timedelta(seconds=9)
    documents.record_metadata(tmp_path, IDENTITY, ended, status=RunState.FAILED)

    assert documents.read_metadata(tmp_path) == documents.RunMetadata(
        identity=IDENTITY, created_at=CREATED, started_at=started, completed_at=ended, status=RunState.FAILED
    )


def test_recording_again_changes_no_time(tmp_path: Path) -> None:
    documents.record_metadata(tmp_path, IDENTITY, CREATED, started=True)
    first = documents.record_metadata(tmp_path, IDENTITY, CREATED, status=RunState.SUCCEEDED)
    later = CREATED + timedelta(hours=1)
    documents.record_metadata(tmp_path, IDENTITY, later, started=True)
    assert documents.record_metadata(tmp_path, IDENTITY, later, status=RunState.SUCCEEDED) == first


def test_a_late_truth_replaces_unknown(tmp_path: Path) -> None:
    documents.record_metadata(tmp_path, IDENTITY, CREATED, status=RunState.UNKNOWN)
    later = CREATED + timedelta(hours=1)
    metadata = documents.record_metadata(tmp_path, IDENTITY, later, status=RunState.SUCCEEDED)
    assert (metadata.completed_at, metadata.status) == (later, RunState.SUCCEEDED)


def test_the_folder_of_another_run_is_not_taken_over(tmp_path: Path) -> None:
    documents.record_metadata(tmp_path, IDENTITY, CREATED)
    before = (tmp_path / documents.METADATA).read_bytes()
    with pytest.raises(documents.IdentityContradicted, match="not to other"):
        documents.record_metadata(tmp_path, IDENTITY.model_copy(update={"run_id": "other"}), CREATED)
    assert (tmp_path / documents.METADATA).read_bytes() == before
