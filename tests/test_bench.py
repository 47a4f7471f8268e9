"""Every bench starts as a plain file, from any folder and without further set-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCHES = sorted(Path(__file__).parents[1].glob("bench/*.py"))


def test_every_bench_finds_what_it_imports(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    load = "import runpy, sys; [runpy.run_path(path, run_name='loaded') for path in sys.argv[1:]]"
    done = subprocess.run(
        [sys.executable, "-c", load, *map(str, BENCHES)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
