"""A disk that fills up and one that can't be written to: no folder, said in a sentence, and nothing half there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence.small_disks import needs_small_disks, run_on

ASK = """
import sys
from pathlib import Path
from evidence.folders import FolderUnwritable, allocate, take_slot
ask = {ask}
for index in range(100):
    try:
        ask(Path(sys.argv[1]), f"run-{{index}}")
    except FolderUnwritable as refused:
        print(refused.message)
        break
"""
ASKS = {
    "sched": 'lambda storage, run_id: allocate(storage, "acme", "close", "sched", run_id)',
    "manual": 'lambda storage, run_id: take_slot(storage, "acme", "close", run_id)',
}


@needs_small_disks
@pytest.mark.parametrize("family", ASKS)
def test_a_disk_that_fills_up_refuses_the_run(tmp_path: Path, family: str) -> None:
    said = run_on(tmp_path, "size=1m,nr_inodes=40", ASK.format(ask=ASKS[family]))
    assert "No run folder for pipeline 'close'" in said
    assert "No space left on device" in said


@needs_small_disks
@pytest.mark.parametrize("family", ASKS)
def test_a_storage_that_is_read_only_refuses_the_run(tmp_path: Path, family: str) -> None:
    said = run_on(tmp_path, "ro", ASK.format(ask=ASKS[family]))
    assert "Read-only file system" in said
