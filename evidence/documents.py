"""The one writer of what a run says about itself. Every document carries the identity of its producer, none is
ever overwritten: a second result of the same step is `result-2.json` beside `result-1.json`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from domain.identity import RunIdentity
from domain.run import RunState
from evidence import durable, index
from evidence.book import RunFolder
from evidence.metadata import METADATA as METADATA
from evidence.metadata import IdentityContradicted as IdentityContradicted
from evidence.metadata import RunMetadata as RunMetadata
from evidence.metadata import read_metadata as read_metadata

KIND = re.compile(r"[a-z][a-z0-9_]*")

Body = Mapping[str, JsonValue]


def write(
    folder: Path,
    identity: RunIdentity,
    kind: str,
    body: Body,
    *,
    step_id: str | None = None,
    started_at: datetime | None = None,
    completed_at: datetime | None = None,
    status: str | None = None,
    lasting: bool = True,
) -> Path:
    """Writes `{kind, created_at, started_at, completed_at, status, identity, body}` as `<kind>-<number>.json`, below
    `steps/<step_id>` for a step, and answers where. Times are in UTC and, like `status`, those of what the document
    tells of; null is not known or not so. Not `lasting` is what serves only while the run goes on: it is
    written without waiting for the disk. Raises OSError, and ValueError for a kind that is no word."""
    if not KIND.fullmatch(kind):
        raise ValueError(f"'{kind}' is not a kind of document")
    directory = folder if step_id is None else folder / "steps" / step_id
    durable.make_directory(directory)
    content = _json(
        {
            "kind": kind,
            "created_at": datetime.now(UTC).isoformat(),
            "started_at": _utc(started_at),
            "completed_at": _utc(completed_at),
            "status": status,
            "identity": {**identity.model_dump(mode="json"), "step_id": step_id},
            "body": dict(body),
        }
    )
    for number in itertools.count(1):
        path = directory / f"{kind}-{number}.json"
        if path.exists():
            continue
        try:
            durable.create(path, content, lasting=lasting)
        except FileExistsError:
            continue
        return path
    raise AssertionError("the numbers never end")


def record_metadata(
    folder: Path,
    identity: RunIdentity,
    at: datetime,
    *,
    started: bool = False,
    status: RunState | None = None,
) -> RunMetadata:
    """Notes that the run was created (always), started, or ended in `status`, at the instant `at`, in its folder and
    in the index of its pipeline's runs. Repeating changes nothing. Raises IdentityContradicted when the
    folder is another run's, and OSError."""
    known = read_metadata(folder)
    if known is None:
        known = RunMetadata(identity=identity, created_at=at)
        # The folder's own name was not waited for when it was made; from here on it has something to lose.
        durable.sync(folder.parent)
    if known.identity != identity:
        raise IdentityContradicted(f"{folder} belongs to the run {known.identity.run_id}, not to {identity.run_id}")
    changes: dict[str, Any] = {}
    if started and known.started_at is None:
        changes["started_at"] = at
    if status is not None and status is not known.status:
        changes |= {"completed_at": at, "status": status}
    metadata = known.model_copy(update=changes)
    durable.replace(folder / METADATA, _json(metadata.model_dump(mode="json")))
    if RunFolder.parse(folder.name):
        index.record(folder.parent, folder.name, metadata)
    return metadata


def _utc(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
