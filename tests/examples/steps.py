"""Runs the programs of the examples as a step would: in a work folder, with the least of an environment."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class RunFolder:
    """One run's folder, laid out as for a real run."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / "work"

    def step(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """`program` is below examples/."""
        self.work.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            [sys.executable, "-B", str(EXAMPLES / program), *map(str, arguments)],
            cwd=self.work,
            env={"PATH": os.environ["PATH"], "ALMANAC_RUN_FOLDER": str(self.path), "ALMANAC_RUN_ID": "r-1"},
            capture_output=True,
            text=True,
            check=False,
        )
