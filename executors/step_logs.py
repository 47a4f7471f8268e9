"""The two logs of each attempt at a step: stdout.log and stderr.log, then stdout-2.log and so on."""

from __future__ import annotations

import itertools
from pathlib import Path


def make(directory: Path) -> tuple[Path, Path]:
    for attempt in itertools.count(1):
        suffix = "" if attempt == 1 else f"-{attempt}"
        stdout, stderr = directory / f"stdout{suffix}.log", directory / f"stderr{suffix}.log"
        try:
            stdout.touch(exist_ok=False)
        except FileExistsError:
            continue
        stderr.touch(exist_ok=False)
        return stdout, stderr
    raise AssertionError("the numbers never end")
