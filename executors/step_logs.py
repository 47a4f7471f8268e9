"""The two logs of each attempt at a step: stdout.log and stderr.log, then stdout-2.log and so on."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from evidence import documents
from executors.protocol import Execution


class Begun(NamedTuple):
    stdout: Path
    stderr: Path
    identity: Path
    """The document that says whose the logs are."""


def begin(execution: Execution, step_id: str) -> Begun:
    """The logs of a new attempt."""
    folder = execution.folder.absolute()
    directory = folder / "steps" / step_id
    directory.mkdir(parents=True, exist_ok=True)
    stdout, stderr = make(directory)
    logs: dict[str, JsonValue] = {"stdout": stdout.name, "stderr": stderr.name}
    identity = documents.write(folder, execution.identity, "identity", logs, step_id=step_id, lasting=False)
    return Begun(stdout, stderr, identity)


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


def latest(directory: Path) -> Path | None:
    """What the last attempt printed; None before there is any."""
    found = list(directory.glob("stdout*.log"))
    return max(found, key=lambda path: (len(path.name), path.name), default=None)
