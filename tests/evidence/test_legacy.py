"""A tree from before runs had identities is read as it is, nothing is made up for it, and new runs live beside it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from domain.run import RunState
from evidence import documents, folders, index, reader, retention
from evidence.reader import Standing
from tests.evidence import legacy
from tests.evidence.killing import AT, NOW, allocate, identity, run

EARLIER = datetime(2025, 11, 2, 6, 30, tzinfo=UTC)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return legacy.plant(tmp_path / "acme" / "close")


def contents(runs: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(runs.parent)): path.read_bytes()
        for path in runs.parent.rglob("*")
        if path.is_file() and not path.is_symlink() and "iteration" in str(path)
    }


def test_its_index_is_read_and_tells_only_what_it_knows(runs: Path) -> None:
    entries = {entry.folder: entry for entry in index.read(runs).runs}
    assert entries.keys() == set(legacy.FOLDERS)
    assert {entry.kind for entry in entries.values()} == {"unknown_legacy"}
    assert {entry.run_id for entry in entries.values()} == {None}
    known = entries["iteration-3"]
    assert (known.created_at, known.status) == (EARLIER, RunState.SUCCEEDED)
    assert (entries["iteration-12"].started_at, entries["iteration-12"].status) == (None, None)


def test_without_its_index_the_folders_are_found(runs: Path) -> None:
    (runs / index.NAME).unlink()
    assert {entry.folder for entry in index.read(runs).runs} == set(legacy.FOLDERS)


@pytest.mark.parametrize("name", legacy.FOLDERS)
def test_its_documents_are_shown_and_nobody_s(runs: Path, name: str) -> None:
    evidence = reader.read(runs / name)
    assert evidence.metadata is None
    shown = {one.path: one for one in evidence.documents}
    assert shown.keys() == {"result.json", "linkedin/conversation.json"}
    assert {one.standing for one in shown.values()} == {Standing.UNKNOWN_LEGACY}
    assert {one.identity for one in shown.values()} == {None}
    assert shown["result.json"].body == {"of": name}


def test_what_is_damaged_or_leads_away_is_set_apart(runs: Path) -> None:
    why = {one.path: one.why for name in legacy.FOLDERS for one in reader.read(runs / name).quarantined}
    assert why.keys() == {"half.json", "odd.json", "away.json"}


def test_its_evaluation_counts_for_no_execution(runs: Path) -> None:
    evaluation = reader.read(runs.parent / "evaluation" / "runs" / "iteration-0")
    assert [one.standing for one in evaluation.documents] == [Standing.UNKNOWN_LEGACY]
    assert reader.by_execution(evaluation, "score") == reader.by_execution(evaluation, "report") == {}


def test_new_runs_are_numbered_above_it_and_change_nothing_of_it(tmp_path: Path, runs: Path) -> None:
    before = contents(runs)
    assert allocate(tmp_path, "new") == "iteration-100-sched"
    assert contents(runs).items() >= before.items()


def test_the_slot_s_files_move_out_with_their_evaluation_for_the_first_manual_run(tmp_path: Path, runs: Path) -> None:
    assert run(tmp_path, 1, manual=True) == "iteration-0"
    entries = {entry.folder: entry for entry in index.read(runs).runs}
    assert entries.pop("iteration-0").run_id == "r1"
    (moved,) = entries.keys() - set(legacy.FOLDERS)
    assert entries[moved].kind == "unknown_legacy"
    assert reader.read(runs / moved).documents[0].body is not None
    assert (runs / moved / "result.json").read_text() == '{"of": "iteration-0"}'
    assert (runs.parent / "evaluation" / "runs" / moved / "report.json").exists()
    assert run(tmp_path, 2, manual=True) == "iteration-0"
    assert len({entry.folder for entry in index.read(runs).runs}) == len(index.read(runs).runs)


def test_the_first_run_with_an_identity_makes_the_index_version_2(tmp_path: Path, runs: Path) -> None:
    run(tmp_path, 1)
    again = index.read(runs)
    assert (again.version, again.revision) == (2, 1)
    assert {entry.folder for entry in again.runs} == {*legacy.FOLDERS, "iteration-100-sched"}
    assert {entry.folder: entry for entry in again.runs}["iteration-3"].created_at == EARLIER
    latest = index.latest(again.runs).latest
    assert latest is not None
    assert latest.run_id == "r1", "a legacy run of an earlier date is not the latest, whatever its number"


def test_retention_leaves_it_alone(tmp_path: Path, runs: Path) -> None:
    for number in (1, 2, 3):
        run(tmp_path, number)
    going = retention.due(index.read(runs).runs, 1, (), NOW)
    assert [entry.run_id for entry in going] == ["r1", "r2"]
    retention.expire(tmp_path, "acme", "close", going, NOW)
    assert set(os.listdir(runs)) >= {*legacy.FOLDERS, *legacy.NONE_OF_OURS}


def test_a_legacy_folder_can_not_be_made_a_run_s(runs: Path) -> None:
    """It would give what lies there an owner that it never had."""
    whose = identity("new", "iteration-9-sched")
    documents.record_metadata(runs / "iteration-9-sched", whose, AT)
    shown = reader.read(runs / "iteration-9-sched")
    assert {one.standing for one in shown.documents} == {Standing.UNKNOWN_LEGACY}
    assert folders.owner_of(f"{runs}/iteration-9-sched") is None
