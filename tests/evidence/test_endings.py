"""The end of an execution as its run folder has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.lost_run import Ending
from domain.run import RunState
from evidence import documents, endings
from tests.evidence.test_documents import CREATED, IDENTITY

FAILED = Ending(state=RunState.FAILED, reason="execution_failed", message="Step 'load' ended with exit code 3.")


def begin(folder: Path) -> None:
    documents.record_metadata(folder, IDENTITY, CREATED, started=True)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    begin(tmp_path)
    endings.write(tmp_path, IDENTITY, FAILED, CREATED)
    assert endings.read(tmp_path, "e1") == endings.Told(began=True, ending=FAILED)


def test_nothing_is_read_where_nothing_was_written(tmp_path: Path) -> None:
    assert endings.read(tmp_path, "e1") == endings.Told()
    assert endings.read(tmp_path / "absent", "e1") == endings.Told()
    begin(tmp_path)
    assert endings.read(tmp_path, "e1") == endings.Told(began=True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"identity": {}}'])
def test_an_end_that_cannot_be_read_is_said_to_be_so(tmp_path: Path, content: bytes) -> None:
    begin(tmp_path)
    (tmp_path / documents.METADATA).write_bytes(content)
    told = endings.read(tmp_path, "e1")
    assert told.ending is None
    assert told.unreadable is not None


def test_the_end_of_another_execution_is_not_this_ones(tmp_path: Path) -> None:
    begin(tmp_path)
    endings.write(tmp_path, IDENTITY, FAILED, CREATED)
    assert endings.read(tmp_path, "e2").unreadable == "run_metadata.json belongs to another execution"


@pytest.mark.parametrize("content", [b"", b"null", b'{"body": 3}', b'{"body": {"state": "asleep"}}'])
def test_an_abort_whose_reason_cannot_be_read_is_an_abort_without_a_reason(tmp_path: Path, content: bytes) -> None:
    begin(tmp_path)
    endings.write(tmp_path, IDENTITY, Ending(state=RunState.ABORTED, reason="shutdown"), CREATED)
    (tmp_path / "outcome-1.json").write_bytes(content)
    ending = endings.read(tmp_path, "e1").ending
    assert ending is not None
    assert (ending.state, ending.reason) == (RunState.ABORTED, None)
