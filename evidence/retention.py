"""Which run folders have to make room for newer ones, and how they go: so that whatever interrupts it, nobody sees
half a run, and the next call completes it.

First the index says that the run's files have expired. Then its folder and the paired one of its evaluation leave
their places, each in one step, for `.expired`; what is in there belongs to nobody and is deleted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from pathlib import Path

from domain.run import RunState
from evidence import index
from evidence.book import SLOT, Family, RunFolder
from evidence.folders import runs_directory
from evidence.index import Entry, RunIndex

TREES = ("runs", "evaluation/runs")
EXPIRED = ".expired"

DOUBT = timedelta(hours=24)
"""So long an unknown run may still turn out to be going on."""

REMEMBERED = 1000
"""So many expired runs stay in the index; their rows in the history stay for good."""


def due(entries: Iterable[Entry], keep: int, protected: Collection[str], now: datetime) -> tuple[Entry, ...]:
    """The ended runs of each family beyond the `keep` that began last, oldest first. Never one that may be going on,
    one whose run id is `protected`, whoever has the manual slot, or a legacy folder, of which nothing is known."""
    families: dict[Family, list[Entry]] = defaultdict(list)
    for entry in index.in_order(entries):
        folder = RunFolder.parse(entry.folder)
        if folder is not None and entry.folder != SLOT and entry.expired_at is None and _has_ended(entry, now):
            families[folder.family].append(entry)
    surplus = [entry for family in families.values() for entry in family[:-keep]]
    return tuple(entry for entry in index.in_order(surplus) if entry.run_id not in protected)


def expire(storage: Path, workspace: str, pipeline: str, entries: Iterable[Entry], at: datetime) -> None:
    """Deletes the files of these runs and of their evaluations, and completes what broke off before. Raises OSError."""
    runs = Path(runs_directory(storage, workspace, pipeline))
    keys = {entry.key for entry in entries}

    def marked(known: dict[str, Entry]) -> dict[str, Entry]:
        going = {key: known[key].model_copy(update={"expired_at": at}) for key in keys if key in known}
        return _without_the_oldest(known | going)

    complete(storage, workspace, pipeline, index.change(runs, marked) if keys else index.read(runs))


def complete(storage: Path, workspace: str, pipeline: str, known: RunIndex) -> None:
    """Deletes what is left of the runs whose files the index says have expired. Raises OSError."""
    for tree in (runs_directory(storage, workspace, pipeline, tree=tree) for tree in TREES):
        for entry in known.runs:
            if entry.expired_at is not None and entry.folder != SLOT:
                _move_away(tree, entry.folder)
        if os.path.isdir(f"{tree}/{EXPIRED}"):
            shutil.rmtree(f"{tree}/{EXPIRED}", onerror=_gone_already)


def _has_ended(entry: Entry, now: datetime) -> bool:
    if entry.status is RunState.UNKNOWN:
        return entry.completed_at is not None and now - entry.completed_at > DOUBT
    return entry.status is not None


def _without_the_oldest(entries: dict[str, Entry]) -> dict[str, Entry]:
    expired = [entry.key for entry in index.in_order(entries.values()) if entry.expired_at is not None]
    forgotten = set(expired[:-REMEMBERED])
    return {key: entry for key, entry in entries.items() if key not in forgotten}


def _move_away(tree: str, name: str) -> None:
    if not os.path.isdir(f"{tree}/{name}"):
        return
    os.makedirs(f"{tree}/{EXPIRED}", exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # somebody else moved it
        os.rename(f"{tree}/{name}", f"{tree}/{EXPIRED}/{name}")


def _gone_already(function: object, path: str, error: tuple[type[BaseException], BaseException, object]) -> None:
    """Two that delete the same are no trouble for each other."""
    if not issubclass(error[0], FileNotFoundError):
        raise error[1]
