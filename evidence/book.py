"""The book of a pipeline's run folders: which numbers are given, and which run owns which folder.

The boundary that processes and hosts share is the directory `runs/.numbers`. An entry is a symbolic link that leads
nowhere, made in one step and never changed:

    .numbers/7               -> <run id>           whoever makes the entry has the number, for ever
    .numbers/run-<digest>    -> iteration-7-sched  the folder of that run
    .numbers/latest          -> 7                  where the next search begins; may be old, wrong or missing

Both kinds are in one directory, so that making them outlast a power cut is one wait for the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from typing import Literal, NamedTuple, Self

from domain.pipeline import RESERVED_GROUPS
from evidence import durable

Family = Literal["manual", "sched", "hook"]
FAMILIES: tuple[Family, ...] = ("manual", "sched", "hook")

NAME = re.compile(
    r"iteration-(?P<number>0|[1-9][0-9]{0,17})(-(?P<family>sched|hook))?(/(?P<group>[a-z0-9][a-z0-9_-]{0,62}))?"
)

NOTED_EVERY = 16
"""So many numbers apart the latest is noted: a note costs more than a few looks."""


class RunFolder(NamedTuple):
    """The name of a run folder, or of a group's folder in it, taken apart. Number 0 is the manual slot and belongs to
    no other family. Numbers are for people: they say neither when a run was nor which is the latest."""

    number: int
    family: Family
    group: str | None = None

    def __str__(self) -> str:
        suffix = "" if self.family == "manual" else f"-{self.family}"
        return f"iteration-{self.number}{suffix}" + (f"/{self.group}" if self.group else "")

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """None when `name` is not that of a run folder."""
        found = NAME.fullmatch(name)
        if found is None:
            return None
        number, group = int(found["number"]), found["group"]
        if group in RESERVED_GROUPS:
            return None
        match found["family"]:
            case None:
                return cls(number, "manual", group)
            case "sched" if number > 0:
                return cls(number, "sched", group)
            case "hook" if number > 0:
                return cls(number, "hook", group)
            case _:
                return None


SLOT = str(RunFolder(0, "manual"))


class Book:
    """The book of the folders in `runs`. Every method raises OSError."""

    def __init__(self, runs: str) -> None:
        self._runs = runs
        self.directory = f"{runs}/.numbers"

    def owned_by(self, run_id: str) -> str | None:
        """The folder that was given to the run."""
        return durable.noted(self._entry(run_id))

    def give(self, run_id: str, family: Family) -> str:
        """Gives the run a folder with the next number, or answers the one that somebody else gave it meanwhile."""
        name = str(RunFolder(self.take_number(run_id), family))
        entry = self._entry(run_id)
        try:
            durable.note(entry, name)
        except FileExistsError:
            # Somebody else asked for the same run at the same time and was faster. Our number stays unused.
            return os.readlink(entry)
        return name

    def take_number(self, run_id: str) -> int:
        try:
            latest = durable.noted(f"{self.directory}/latest")
        except NotADirectoryError:
            latest = None
        number = self._first_free(int(latest) if latest and latest.isdecimal() else self._highest())
        while not self._take(number, run_id):
            number += 1
        if number % NOTED_EVERY == 1 or latest is None or not latest.isdecimal():
            self._note_latest(number)
        return number

    def _entry(self, run_id: str) -> str:
        return f"{self.directory}/run-{hashlib.sha256(run_id.encode()).hexdigest()}"

    def _first_free(self, given: int) -> int:
        """A number that is free now, beyond `given`. Numbers are given in order, so it is found in ever longer steps,
        and then by halving the last one."""
        low, step = given, 1
        while self._is_given(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_given(middle):
                low = middle
            else:
                high = middle
        return high

    def _is_given(self, number: int) -> bool:
        return os.path.lexists(f"{self.directory}/{number}")

    def _take(self, number: int, run_id: str) -> bool:
        try:
            self._note_in_directory(f"{self.directory}/{number}", run_id)
        except FileExistsError:
            return False
        # A folder older than this book keeps its number to itself.
        return not any(os.path.lexists(f"{self._runs}/{RunFolder(number, family)}") for family in FAMILIES)

    def _note_in_directory(self, path: str, text: str) -> None:
        try:
            durable.note(path, text)
        except FileNotFoundError:
            durable.make_directory(self.directory)
            durable.note(path, text)

    def _highest(self) -> int:
        """The highest number ever given or taken by a folder, by looking at them all."""
        names = [*_listed(self.directory), *_listed(self._runs)]
        folders = [folder.number for name in names if (folder := RunFolder.parse(name))]
        return max([int(name) for name in names if name.isdecimal()] + folders, default=0)

    def _note_latest(self, number: int) -> None:
        draft = f"{self.directory}/latest.{number}"
        with contextlib.suppress(OSError):
            os.symlink(str(number), draft)
            os.replace(draft, f"{self.directory}/latest")


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
