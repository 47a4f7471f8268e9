"""The sandbox as workers use it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from worker.sandbox import bytecode_kept


@pytest.mark.parametrize("unwanted", [True, False])
def test_bytecode_is_kept_for_as_long_as_the_worker_lives(unwanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", unwanted)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    with bytecode_kept():
        folder = sys.pycache_prefix
        assert not sys.dont_write_bytecode
        assert (folder is not None) is unwanted
        assert folder is None or Path(folder).is_dir()
    assert sys.dont_write_bytecode is unwanted
    assert sys.pycache_prefix is None
    assert folder is None or not Path(folder).exists()
