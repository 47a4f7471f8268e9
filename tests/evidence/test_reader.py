"""The one reader: own documents in order, foreign and damaged ones set apart, legacy ones left as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.identity import RunIdentity
from domain.run import Origin, RunState
from evidence import documents, folders, reader
from evidence.reader import Standing

AT = datetime(2027, 3, 14, 7, tzinfo=UTC)
OWNER = RunIdentity(
    run_kind="schedule",
    run_id="s1-20270314T070000Z",
    workspace="acme",
    schedule_id="s1",
    scheduled_for=AT,
    trigger_source=Origin.CRON,
    execution_id="e1",
    run_folder="iteration-1-sched",
    plan_revision=3,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    name = folders.allocate(tmp_path, "acme", "close", "sched", OWNER.run_id)
    path = folders.run_folder_path(tmp_path, "acme", "close", name)
    documents.record_metadata(path, OWNER, AT, started=True)
    return path


def other(**changes: Any) -> RunIdentity:
    return OWNER.model_copy(update=changes)


def rewritten(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text()) | changes
    path.unlink()
    path.write_text(json.dumps(content))


def test_the_runs_own_documents_are_read_whole(folder: Path) -> None:
    documents.write(
        folder, OWNER, "result", {"rows": 3}, step_id="load", started_at=AT, completed_at=AT, status="succeeded"
    )
    evidence = reader.read(folder)
    assert evidence.quarantined == ()
    [document] = evidence.documents
    assert (document.standing, document.path) == (Standing.OWN, "steps/load/result-1.json")
    assert (document.kind, document.step_id, document.body) == ("result", "load", {"rows": 3})
    assert (document.started_at, document.completed_at, document.status) == (AT, AT, "succeeded")
    assert document.identity == OWNER
    assert evidence.metadata is not None
    assert evidence.metadata.identity == OWNER


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", "s1-20270315T070000Z"),
        ("execution_id", "e2"),
        ("workspace", "other"),
        ("run_kind", "hook"),
        ("schedule_id", "s2"),
        ("scheduled_for", None),
        ("trigger_source", Origin.RUN_NOW),
        ("run_folder", "iteration-2-sched"),
        ("plan_revision", 4),
    ],
)
def test_a_document_that_contradicts_is_set_apart_with_the_reason(folder: Path, field: str, value: object) -> None:
    documents.write(folder, OWNER, "result", {})
    documents.write(folder, other(**{field: value}), "result", {"foreign": True})
    evidence = reader.read(folder)
    assert [document.path for document in evidence.documents] == ["result-1.json"]
    [foreign] = evidence.quarantined
    assert foreign.path == "result-2.json"
    assert foreign.why is not None
    assert foreign.why.startswith(f"Its {field} is {value}")


def test_the_documents_of_a_group_are_the_runs_own(folder: Path) -> None:
    documents.write(folder / "emea", other(group="emea"), "result", {})
    documents.write(folder / "apac", other(group="apac", run_id="g", parent_run_id=OWNER.run_id), "result", {})
    assert [document.path for document in reader.read(folder).documents] == [
        "emea/result-1.json",
        "apac/result-1.json",
    ]


def legacy(path: Path) -> None:
    path.write_text('{"status": "ok", "created_at": "2020-01-01T00:00:00Z"}')


def test_a_document_without_an_identity_is_unknown_legacy_and_nothing_is_made_up(folder: Path) -> None:
    legacy(folder / "summary.json")
    [document] = reader.read(folder).documents
    assert document.standing is Standing.UNKNOWN_LEGACY
    assert (document.identity, document.created_at, document.kind) == (None, None, None)
    assert document.body == {"status": "ok", "created_at": "2020-01-01T00:00:00Z"}


def half(path: Path) -> None:
    path.write_text('{"identity": {')


def not_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def a_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(reader.LARGEST_DOCUMENT + 1)


def half_an_identity(path: Path) -> None:
    path.write_text('{"identity": {"run_id": "s1"}}')


def no_object_as_identity(path: Path) -> None:
    path.write_text('{"identity": 7}')


def a_time_without_a_zone(path: Path) -> None:
    path.write_text(json.dumps({"identity": OWNER.model_dump(mode="json"), "created_at": "2027-01-01T00:00:00"}))


@pytest.mark.parametrize(
    "damage",
    [
        *(half, not_text, deep, a_link, a_pipe, huge),
        *(half_an_identity, no_object_as_identity, a_time_without_a_zone),
    ],
)
def test_what_is_damaged_is_set_apart_and_the_rest_is_read(folder: Path, damage: Callable[[Path], None]) -> None:
    documents.write(folder, OWNER, "result", {})
    damage(folder / "injected.json")
    evidence = reader.read(folder)
    assert [document.path for document in evidence.documents] == ["result-1.json"]
    assert [document.path for document in evidence.quarantined] == ["injected.json"]
    assert evidence.quarantined[0].why


def test_documents_are_ordered_by_time_and_not_by_number(folder: Path) -> None:
    for number in range(1, 12):
        path = documents.write(folder, OWNER, "result", {"number": number})
        rewritten(path, created_at=(AT - timedelta(minutes=number)).isoformat())
    legacy(folder / "z.json")
    bodies = [document.body for document in reader.read(folder).documents]
    assert bodies[1:] == [{"number": number} for number in range(11, 0, -1)]
    assert reader.read(folder).documents[0].path == "z.json"


def test_documents_of_one_moment_are_in_the_order_in_which_they_were_written(folder: Path) -> None:
    for number in range(1, 12):
        rewritten(documents.write(folder, OWNER, "result", {"number": number}), created_at=AT.isoformat())
    assert [document.body for document in reader.read(folder).documents] == [{"number": n} for n in range(1, 12)]


def test_what_programs_leave_in_their_work_folder_is_no_document(folder: Path) -> None:
    (folder / "work").mkdir()
    half(folder / "work" / "data.json")
    assert reader.read(folder).documents == reader.read(folder).quarantined == ()


def test_a_description_that_contradicts_the_marker_is_set_apart_itself(folder: Path) -> None:
    foreign = other(run_id="foreign")
    metadata = documents.RunMetadata(identity=foreign, created_at=AT, status=RunState.SUCCEEDED)
    (folder / documents.METADATA).write_text(metadata.model_dump_json())
    documents.write(folder, OWNER, "result", {})
    documents.write(folder, foreign, "result", {})
    evidence = reader.read(folder)
    assert evidence.metadata is None
    assert [document.path for document in evidence.documents] == ["result-1.json"]
    assert [document.path for document in evidence.quarantined] == ["result-2.json", documents.METADATA]


def test_a_damaged_description_is_set_apart(folder: Path) -> None:
    (folder / documents.METADATA).write_text("{")
    [metadata] = reader.read(folder).quarantined
    assert metadata.path == documents.METADATA


def test_a_legacy_folder_is_read_by_its_name_alone(tmp_path: Path) -> None:
    folder = tmp_path / OWNER.run_folder
    folder.mkdir()
    documents.write(folder, OWNER, "result", {})
    documents.write(folder, other(run_folder="iteration-9"), "result", {})
    legacy(folder / "old.json")
    evidence = reader.read(folder)
    assert [document.path for document in evidence.documents] == ["old.json", "result-1.json"]
    assert [document.path for document in evidence.quarantined] == ["result-2.json"]


def test_costs_are_of_one_execution_and_nobody_inherits_them(folder: Path) -> None:
    documents.write(folder, OWNER, "cost", {"usd": "1.20"}, step_id="load")
    documents.write(folder, OWNER, "cost", {"usd": "0.30"}, step_id="send")
    documents.write(folder, OWNER, "score", {"value": 1})
    documents.write(folder, other(execution_id="e2"), "cost", {"usd": "99"})
    (folder / "cost-9.json").write_text('{"kind": "cost", "body": {"usd": "77"}}')
    costs = reader.by_execution(reader.read(folder), "cost")
    assert {execution: [document.body for document in found] for execution, found in costs.items()} == {
        "e1": [{"usd": "1.20"}, {"usd": "0.30"}]
    }


KINDS = (
    *("result", "conversation", "prompt", "timing", "pre_validation", "validation", "summary"),
    *("progress", "receipt", "cost", "score", "report"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_document_is_own_foreign_or_legacy(folder: Path, kind: str) -> None:
    own = documents.write(folder, OWNER, kind, {"of": "own"}, step_id="load")
    documents.write(folder, other(execution_id="e2"), kind, {"of": "another"}, step_id="load")
    content = json.loads(own.read_bytes())
    del content["identity"]
    (own.parent / f"{kind}.json").write_text(json.dumps(content))

    evidence = reader.read(folder)

    standing = {Path(one.path).name: one.standing for one in (*evidence.documents, *evidence.quarantined)}
    assert standing == {
        f"{kind}-1.json": Standing.OWN,
        f"{kind}-2.json": Standing.QUARANTINED,
        f"{kind}.json": Standing.UNKNOWN_LEGACY,
    }
    (counted,) = reader.by_execution(evidence, kind).values()
    assert [one.body for one in counted] == [{"of": "own"}]
