"""Run folders: `<storage>/<workspace>/<pipeline>/runs/iteration-N…`, each bound to one run for ever.

    iteration-0          the mutable slot of a manual run
    iteration-N          what a manual run left when the next one took the slot
    iteration-N-sched    an occurrence or a Run now of a schedule; immutable
    iteration-N-hook     a webhook's invocation; immutable

All families draw N from one number space. The boundary that processes and hosts share is the directory
`runs/.numbers`: whoever creates the entry N there has the number, and no number is given twice, not even after
its folder was deleted. `runs/.owners` has one entry per run, which names its folder, so asking again answers
the same folder without a search. A crash between the two leaves a number unused; a crash after leaves a folder
that the next call completes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path
from typing import Literal, NamedTuple, Self

from evidence import durable

Family = Literal["manual", "sched", "hook"]

MARKER = ".schedule-run-id"
"""The file in a run folder that names its owner."""

NAME = re.compile(r"iteration-(?P<number>0|[1-9][0-9]{0,17})(-(?P<family>sched|hook))?")


class FolderUnwritable(Exception):
    """The run has no folder it may write to, so it must not start. `message` is a sentence for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RunFolder(NamedTuple):
    """The name of a run folder, taken apart. Number 0 is the manual slot and belongs to no other family."""

    number: int
    family: Family

    def __str__(self) -> str:
        suffix = "" if self.family == "manual" else f"-{self.family}"
        return f"iteration-{self.number}{suffix}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """None when `name` is not that of a run folder."""
        found = NAME.fullmatch(name)
        if found is None:
            return None
        number = int(found["number"])
        match found["family"]:
            case None:
                return cls(number, "manual")
            case "sched" if number > 0:
                return cls(number, "sched")
            case "hook" if number > 0:
                return cls(number, "hook")
            case _:
                return None


def run_folder_path(storage: Path, workspace: str, pipeline: str, name: str) -> Path:
    """Where the run folder `name` is. Raises ValueError when that is no run folder or not inside the storage."""
    if RunFolder.parse(name) is None:
        raise ValueError(f"'{name}' is not the name of a run folder")
    return _runs_directory(storage, workspace, pipeline) / name


def allocate(storage: Path, workspace: str, pipeline: str, family: Literal["sched", "hook"], run_id: str) -> str:
    """The name of the run's own folder, which exists when this returns. The same run always gets the same
    folder, whoever asks, however often, and wherever an earlier call broke off. Raises FolderUnwritable."""
    try:
        runs = _runs_directory(storage, workspace, pipeline)
        name = durable.noted(_owner_entry(runs, run_id)) or _own_a_new_one(runs, family, run_id)
        _bind(runs / name, run_id)
        # All at the end, so that it is one wait for the disk and not five.
        for path in (runs / name / MARKER, runs / name, runs, runs / ".numbers", runs / ".owners"):
            durable.sync(path)
    except (OSError, ValueError) as error:
        raise FolderUnwritable(
            f"No run folder for pipeline '{pipeline}' below {storage / workspace}: {_cause(error)}. "
            "Make the storage writable for the workers and start the run again."
        ) from error
    return name


def _runs_directory(storage: Path, workspace: str, pipeline: str) -> Path:
    segments = [workspace, *pipeline.split("/")]
    if "/" in workspace or any(segment in ("", ".", "..") or "\0" in segment for segment in segments):
        raise ValueError(f"'{workspace}/{pipeline}' is not a path inside the storage")
    runs = storage.joinpath(*segments, "runs")
    if not runs.resolve().is_relative_to(storage.resolve()):
        raise ValueError(f"{runs} leads out of the storage")
    return runs


def _owner_entry(runs: Path, run_id: str) -> Path:
    return runs / ".owners" / hashlib.sha256(run_id.encode()).hexdigest()


def _own_a_new_one(runs: Path, family: Family, run_id: str) -> str:
    name = str(RunFolder(_take_number(runs, run_id), family))
    entry = _owner_entry(runs, run_id)
    durable.make_directory(entry.parent)
    try:
        durable.note(entry, name)
    except FileExistsError:
        # Somebody else asked for the same run at the same time and was faster. Our number stays unused.
        return os.readlink(entry)
    return name


def _take_number(runs: Path, run_id: str) -> int:
    durable.make_directory(runs / ".numbers")
    number = _last_number(runs) + 1
    while not _take(runs, number, run_id):
        number += 1
    # Only where the next search begins, so a lost or older note costs a few more tries and nothing else.
    latest = runs / ".numbers" / "latest"
    draft = latest.with_name(f"latest.{number}")
    with contextlib.suppress(OSError):
        draft.symlink_to(str(number))
        draft.replace(latest)
    return number


def _take(runs: Path, number: int, run_id: str) -> bool:
    try:
        durable.note(runs / ".numbers" / str(number), run_id)
    except FileExistsError:
        return False
    # A folder older than this bookkeeping keeps its number to itself.
    families: tuple[Family, ...] = ("manual", "sched", "hook")
    return not any(os.path.lexists(runs / str(RunFolder(number, family))) for family in families)


def _last_number(runs: Path) -> int:
    latest = durable.noted(runs / ".numbers" / "latest")
    if latest is not None and latest.isdecimal():
        return int(latest)
    taken = [int(name) for name in os.listdir(runs / ".numbers") if name.isdecimal()]
    folders = [folder.number for name in os.listdir(runs) if (folder := RunFolder.parse(name))]
    return max(taken + folders, default=0)


def _bind(folder: Path, run_id: str) -> None:
    folder.mkdir(exist_ok=True)
    try:
        owner = (folder / MARKER).read_text()
    except FileNotFoundError:
        owner = ""
    if not owner:
        # None yet, or one that a power cut emptied.
        durable.replace(folder / MARKER, run_id.encode(), mode=0o444, lasting=False)
    elif owner != run_id:
        raise ValueError(f"{folder.name} belongs to the run '{owner}'")


def _cause(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error)
