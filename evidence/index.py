"""`runs/run_index.json`: the runs of a pipeline at a glance, so that nobody lists folders or reads recency from names.

It is a projection. What is true is in the folders' own `run_metadata.json`, from which a lost or damaged index is made
anew. Writers of all processes and hosts take turns without a lock: a new revision is a file `.index/<revision>` that
is created exclusively, from the newest one there is; whoever comes second reads the first's and tries the next
number. What is published under the index's name is a link to the newest.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, ValidationError

from domain.run import Origin, RunState
from domain.values import Value
from evidence import durable, folders
from evidence.book import SLOT, Book, RunFolder
from evidence.metadata import RunMetadata, read_metadata

NAME = "run_index.json"
REVISIONS = ".index"

KEPT_REVISIONS = 16
"""So many are left for those who read while others write."""


class Entry(Value):
    """One run folder, there or expired. What is not known is None."""

    folder: str
    kind: Literal["schedule", "hook", "manual", "unknown_legacy"]
    run_id: str | None = None
    execution_id: str | None = None
    schedule_id: str | None = None
    scheduled_for: AwareDatetime | None = None
    trigger_source: Origin | None = None
    created_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    completed_at: AwareDatetime | None = None
    status: RunState | None = None
    """The final state."""
    expired_at: AwareDatetime | None = None
    """When its files were deleted."""

    @property
    def key(self) -> str:
        return self.run_id or self.folder


class RunIndex(Value):
    version: Literal[2] = 2
    revision: int = 0
    runs: tuple[Entry, ...] = ()
    """By when they began, the latest last; those whose time is not known come first."""


class Latest(Value):
    """Which runs people mean by the current and the latest one, chosen by what is recorded of them."""

    current: Entry | None
    """Begun last of those that have not ended."""
    latest: Entry | None
    """Begun last of those that have ended."""
    latest_succeeded: Entry | None


class _Damaged(Exception):
    """A file that is no index."""


def read(runs: Path) -> RunIndex:
    """The index of version 2, made from one of version 1 or from the folders where need be. Raises OSError; a
    pipeline without runs has an empty index."""
    while True:
        newest = _newest(runs)
        try:
            content = _revision_path(runs, newest).read_bytes() if newest else None
        except FileNotFoundError:
            continue  # many others have written since
        return _first_readable(runs, content).model_copy(update={"revision": newest})


def scan(runs: Path) -> tuple[Entry, ...]:
    """The entries of the folders there are, as these describe themselves. Raises OSError."""
    return in_order(entry for name in _folders(runs) if (entry := _described(runs, name)))


def record(runs: Path, name: str, metadata: RunMetadata) -> RunIndex:
    """Notes what the folder `name` says of its run. Repeating it changes nothing. Raises OSError."""
    entry = entry_of(name, metadata)

    def noted(entries: dict[str, Entry]) -> dict[str, Entry]:
        if name == SLOT:
            entries = _without_the_slot(runs, entries, entry.key)
        known = entries.get(entry.key)
        expired_at = known.expired_at if known else None
        return entries | {entry.key: entry.model_copy(update={"expired_at": expired_at})}

    return change(runs, noted)


def change(runs: Path, apply: Callable[[dict[str, Entry]], dict[str, Entry]]) -> RunIndex:
    """Replaces the entries, which `apply` is given by run id (or by folder, where there is none), by what it answers.
    It may be asked more than once and must do nothing else. Raises OSError."""
    durable.make_directory(runs / REVISIONS)
    while True:
        index = read(runs)
        entries = in_order(apply({entry.key: entry for entry in index.runs}).values())
        if entries == index.runs and index.revision > 0:
            return index
        changed = RunIndex(revision=index.revision + 1, runs=entries)
        try:
            path = _revision_path(runs, changed.revision)
            durable.create(path, changed.model_dump_json(exclude_none=True).encode(), lasting=False)
        except (FileExistsError, FileNotFoundError):
            continue  # somebody was faster, or by so many that the draft was cleared away as an old one
        if _newest(runs) - changed.revision >= KEPT_REVISIONS:
            continue  # the number was not the next: whoever had it is long forgotten
        _publish(runs, changed.revision)
        return changed


def latest(entries: Iterable[Entry]) -> Latest:
    """Expired runs count: that its files are gone makes an older run no later one."""
    ordered = in_order(entries)

    def last(meets: Callable[[Entry], bool]) -> Entry | None:
        return next((entry for entry in reversed(ordered) if meets(entry)), None)

    return Latest(
        current=last(lambda entry: entry.started_at is not None and entry.status is None),
        latest=last(lambda entry: entry.status is not None),
        latest_succeeded=last(lambda entry: entry.status is RunState.SUCCEEDED),
    )


def entry_of(name: str, metadata: RunMetadata) -> Entry:
    identity = metadata.identity
    return Entry.model_validate(
        {
            "folder": name,
            "kind": identity.run_kind,
            **{field: getattr(identity, field) for field in ("run_id", "execution_id", "schedule_id")},
            **{field: getattr(identity, field) for field in ("scheduled_for", "trigger_source")},
            **{field: getattr(metadata, field) for field in ("created_at", "started_at", "completed_at", "status")},
        }
    )


def _folders(runs: Path) -> list[str]:
    try:
        with os.scandir(runs) as found:
            return [entry.name for entry in found if RunFolder.parse(entry.name) and entry.is_dir()]
    except FileNotFoundError:
        return []


def _described(runs: Path, name: str) -> Entry | None:
    """None for a folder that was given to a run that has not begun."""
    try:
        metadata = read_metadata(runs / name)
        if metadata is None and folders.owner_of(f"{runs}/{name}") is not None:
            return None
    except (OSError, ValidationError):
        metadata = None
    return entry_of(name, metadata) if metadata else Entry(folder=name, kind="unknown_legacy")


def in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """By when they began, the latest last; those whose time is not known come first."""
    return tuple(sorted(entries, key=position))


def position(entry: Entry) -> tuple[datetime, str]:
    """Where an entry stands among the others."""
    began = entry.started_at or entry.created_at or datetime.min.replace(tzinfo=UTC)
    return began.astimezone(UTC), entry.key


def _without_the_slot(runs: Path, entries: dict[str, Entry], key: str) -> dict[str, Entry]:
    """Whoever had the slot before is in its own folder now."""
    kept = {other: entry for other, entry in entries.items() if entry.folder != SLOT or other == key}
    for other in entries.keys() - kept.keys():
        run_id = entries[other].run_id
        owned = Book(os.fspath(runs)).owned_by(run_id) if run_id else None
        folder = owned or _place_without_book(runs, run_id, kept)
        if folder is not None:
            moved = entries[other].model_copy(update={"folder": folder})
            kept[moved.key] = moved
    return kept


def _place_without_book(runs: Path, run_id: str | None, known: Mapping[str, Entry]) -> str | None:
    """Where a folder older than the book, or copied from elsewhere, went when it left the slot: it is not noted yet,
    and says that it is this run's, or nobody's."""
    noted = {entry.folder for entry in known.values()} | {SLOT}
    unnoted = [name for name in _folders(runs) if name not in noted]
    return next((name for name in unnoted if (one := _described(runs, name)) and one.run_id == run_id), None)


# Revisions ------------------------------------------------------------------------------------------------


def _newest(runs: Path) -> int:
    try:
        return max((int(name) for name in os.listdir(runs / REVISIONS) if name.isdecimal()), default=0)
    except FileNotFoundError:
        return 0


def _revision_path(runs: Path, revision: int) -> Path:
    return runs / REVISIONS / str(revision)


def _publish(runs: Path, revision: int) -> None:
    """Gives the newest revision the index's name. Who was overtaken meanwhile publishes what is newest now."""
    while revision:
        draft = runs / f".{NAME}.{revision}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            os.link(_revision_path(runs, revision), draft)
            os.replace(draft, runs / NAME)
        # Renaming one link of a file to another of the same file leaves both.
        draft.unlink(missing_ok=True)
        newest = _newest(runs)
        revision = newest if newest > revision else 0
    _forget_old(runs)


def _forget_old(runs: Path) -> None:
    oldest = _newest(runs) - KEPT_REVISIONS
    for name in os.listdir(runs / REVISIONS):
        number = name.lstrip(".").partition(".")[0]
        if number.isdecimal() and int(number) <= oldest:
            with contextlib.suppress(FileNotFoundError):
                (runs / REVISIONS / name).unlink()


# Reading both versions ------------------------------------------------------------------------------------


def _first_readable(runs: Path, newest: bytes | None) -> RunIndex:
    if newest is not None:
        with contextlib.suppress(_Damaged):
            return _parse(newest)
    with contextlib.suppress(FileNotFoundError, _Damaged):
        return _parse((runs / NAME).read_bytes())
    return RunIndex(runs=scan(runs))


def _parse(content: bytes) -> RunIndex:
    try:
        return RunIndex.model_validate_json(content)
    except ValidationError:
        pass
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _Damaged from error
    if not isinstance(found, dict) or found.get("version", 1) != 1:
        raise _Damaged
    return RunIndex(runs=in_order(_of_version_1(found.get("runs"))))


def _of_version_1(runs: object) -> list[Entry]:
    """Version 1 lists folders, by name or as objects, or maps their names to objects. All but the times and the status
    is left unknown: a run of that time had no identity."""
    if isinstance(runs, Mapping):
        runs = [{**(facts if isinstance(facts, Mapping) else {}), "folder": name} for name, facts in runs.items()]
    listed = [{"folder": run} if isinstance(run, str) else run for run in runs] if isinstance(runs, list) else []
    return [entry for run in listed if isinstance(run, Mapping) and (entry := _legacy(run))]


def _legacy(facts: Mapping[str, Any]) -> Entry | None:
    name = facts.get("folder", facts.get("name"))
    if not isinstance(name, str) or RunFolder.parse(name) is None:
        return None
    entry = Entry(folder=name, kind="unknown_legacy")
    for field in ("created_at", "started_at", "completed_at", "status"):
        with contextlib.suppress(ValidationError):
            entry = Entry.model_validate({**entry.model_dump(), field: facts.get(field)})
    return entry
