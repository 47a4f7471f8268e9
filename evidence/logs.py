"""What the programs of a run printed: a file for each stream of each attempt at a step, in the order of their start."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from domain.pipeline import RESERVED_GROUPS
from domain.values import Value

LOG = re.compile(r"(?P<stream>stdout|stderr)(-(?P<attempt>[0-9]{1,6}))?\.log")


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


class Log(Value):
    step_id: str
    """Within a group after its name, such as `linkedin/ask`."""
    attempt: int
    """1 for the first."""
    stream: Stream
    path: str
    """Below the run folder, with slashes. The file only ever grows."""
    bytes: int
    started_at: datetime
    """When the attempt began."""


def listed(folder: Path) -> tuple[Log, ...]:
    """Raises OSError when the folder can't be listed. No link is followed."""
    return tuple(sorted(_logs(folder), key=lambda log: (log.started_at, log.step_id, log.attempt, log.stream)))


def _logs(folder: Path) -> Iterator[Log]:
    for group in ("", *_groups(folder)):
        for step in _directories(folder / group / "steps"):
            with os.scandir(step) as entries:
                for entry in entries:
                    named = LOG.fullmatch(entry.name)
                    if named and entry.is_file(follow_symlinks=False):
                        yield _log(group, step, entry, Stream(named["stream"]), int(named["attempt"] or 1))


def _log(group: str, step: os.DirEntry[str], entry: os.DirEntry[str], stream: Stream, attempt: int) -> Log:
    known = entry.stat(follow_symlinks=False)
    prefix = f"{group}/" if group else ""
    return Log(
        step_id=f"{prefix}{step.name}",
        attempt=attempt,
        stream=stream,
        path=f"{prefix}steps/{step.name}/{entry.name}",
        bytes=known.st_size,
        started_at=datetime.fromtimestamp(_began(step, attempt) or known.st_mtime, UTC),
    )


def _began(step: os.DirEntry[str], attempt: int) -> float | None:
    """The document that says whose the attempt is was written when it began, and never since."""
    try:
        return os.lstat(f"{step.path}/identity-{attempt}.json").st_mtime
    except OSError:
        return None


def _groups(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        known = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return [name for name in known if name not in RESERVED_GROUPS]


def _directories(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Of the steps that have begun. Before the first one there is none."""
    try:
        known = os.lstat(folder)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(known.st_mode):
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if entry.is_dir(follow_symlinks=False))
