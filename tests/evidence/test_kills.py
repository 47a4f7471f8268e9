"""Killed with SIGKILL before each step on the disk, nothing is lost, shared or half there; the next call goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.evidence.killing import SCENARIOS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_each_step(tmp_path: Path, scenario: str) -> None:
    argv = [sys.executable, "-m", "tests.evidence.killing", scenario, str(tmp_path)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4, "so few steps can't be all"
