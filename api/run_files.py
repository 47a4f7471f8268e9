"""What a run left, over REST: its files as they are, and its evidence with what contradicts set apart."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from api.parts import Parts, PartsOf, RunId, WorkspaceName
from domain import cost, frozen
from domain.cost import Cost
from domain.errors import NotFound, OutOfRange, Unavailable
from domain.run import Run
from domain.values import Value
from evidence import files, folders, logs, reader
from evidence.files import File
from evidence.logs import Log
from evidence.reader import Document, Evidence

router = APIRouter(prefix="/api/v1/workspaces/{workspace}/runs", tags=["runs"])

RANGE = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})")


class RunFiles(Value):
    run_folder: str
    """Where the files are now."""
    items: tuple[File, ...]
    complete: bool
    """False where there are more files than are listed."""


class RunLogs(Value):
    run_folder: str
    """Where the files are now."""
    items: tuple[Log, ...]
    """In the order in which the attempts began."""


class RunEvidence(Value):
    run_folder: str
    """Where the documents are now."""
    run: Evidence
    evaluation: Evidence | None
    """What scored the run, in the paired folder; null when nothing did."""
    costs: dict[str, tuple[Document, ...]]
    """The run's own cost documents and its evaluation's, by execution id."""
    cost_totals: dict[str, dict[str, str]]
    """What they come to for each execution, by currency."""
    scores: dict[str, tuple[Document, ...]]
    """The run's own score documents, by execution id."""


@router.get("/{run_id}/files")
async def list_files(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> RunFiles:
    """The files in a run's folder, by path. 404 `run.files_expired` once newer runs took their place."""
    folder = await _folder(parts, workspace, run_id)
    listing = await asyncio.to_thread(files.listed, folder)
    return RunFiles(run_folder=folder.name, items=listing.files, complete=listing.complete)


@router.get("/{run_id}/files/{path:path}", response_class=StreamingResponse)
async def read_file(
    parts: PartsOf,
    workspace: WorkspaceName,
    run_id: RunId,
    path: str,
    asked: Annotated[str | None, Header(alias="Range", description="`bytes=0-99`, `bytes=100-`, `bytes=-100`")] = None,
) -> StreamingResponse:
    """One file as it is, streamed; 206 for a `Range` of its bytes. Links are not followed."""
    folder = await _folder(parts, workspace, run_id)
    try:
        file = await asyncio.to_thread(files.open_file, folder, path)
    except files.NoSuchFile:
        raise NotFound("run.file_not_found", "The run has no such file that can be read.") from None
    size = os.fstat(file.fileno()).st_size
    try:
        start, count, partial = _part(asked, size)
    except OutOfRange:
        file.close()
        raise
    headers = {"Content-Length": str(count), "Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff"}
    if partial:
        headers["Content-Range"] = f"bytes {start}-{start + count - 1}/{size}"
    content = files.pieces(file, start, count)
    return StreamingResponse(content, 206 if partial else 200, headers, media_type="application/octet-stream")


@router.get("/{run_id}/logs")
async def list_logs(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> RunLogs:
    """Which steps of a run printed how much so far. What they printed is read from the files, from any byte on."""
    folder = await _folder(parts, workspace, run_id)
    return RunLogs(run_folder=folder.name, items=await asyncio.to_thread(logs.listed, folder))


@router.get("/{run_id}/evidence")
async def read_evidence(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> RunEvidence:
    """The documents that a run wrote, in order; those that contradict its identity, or can't be read, stand apart under
    `quarantined` with the reason. Costs and scores are keyed by execution."""
    folder = await _folder(parts, workspace, run_id)
    return await asyncio.to_thread(evidence_in, folder)


def evidence_in(folder: Path) -> RunEvidence:
    """What a run folder and its paired one hold. Raises OSError."""
    run = reader.read(folder)
    paired = folder.parent.with_name("evaluation") / "runs" / folder.name
    evaluation = reader.read(paired, owner=run.metadata) if paired.is_dir() else None
    costs = reader.by_execution(run, "cost")
    for execution_id, found in reader.by_execution(evaluation, "cost").items() if evaluation else ():
        costs[execution_id] = (*costs.get(execution_id, ()), *found)
    return RunEvidence(
        run_folder=folder.name,
        run=run,
        evaluation=evaluation,
        costs=costs,
        cost_totals={execution_id: _total(found) for execution_id, found in costs.items()},
        scores=reader.by_execution(evaluation or run, "score"),
    )


def _total(found: Iterable[Document]) -> dict[str, str]:
    """Documents of another shape are shown and not counted."""
    counted = []
    for document in found:
        with suppress(ValidationError):
            counted.append(Cost.model_validate(document.body).totals)
    return cost.added(counted)


async def _folder(parts: Parts, workspace: str, run_id: str) -> Path:
    return await folder_of(parts, workspace, await parts.queries.run(workspace, run_id))


async def folder_of(parts: Parts, workspace: str, run: Run) -> Path:
    """The run's folder, by who owns it and never by how folders are called. Raises NotFound."""
    if run.files_expired_at is not None:
        raise _expired(run.files_expired_at)
    owner = frozen.folder_owner(run)
    if run.execution_id is None or owner is None:
        raise NotFound("run.no_folder", "Nothing of this run was started, so it has no folder.")
    storage = storage_of(parts)
    if run.run_folder is None:
        return _existing(folders.review_folder_path(storage, workspace, owner, run.run_id))
    name = await asyncio.to_thread(folders.place_of, storage, workspace, owner, run.run_id)
    if name is None:
        raise NotFound("run.folder_missing", f"The run's folder {run.run_folder} is not in the storage any more.")
    return folders.run_folder_path(storage, workspace, owner, name)


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotFound("run.folder_missing", "The review's folder is not in the storage any more.")
    return folder


def storage_of(parts: Parts) -> Path:
    """Raises Unavailable `storage.not_configured`."""
    if parts.settings.storage is None:
        raise Unavailable(
            "storage.not_configured",
            "This server was not told where the run folders are.",
            hint="Set ALMANAC_STORAGE to the folder that the workers use.",
        )
    return parts.settings.storage


def _expired(at: datetime) -> NotFound:
    return NotFound(
        "run.files_expired", f"Newer runs took the place of its files on {at:%Y-%m-%d}.", expired_at=str(at)
    )


def _part(asked: str | None, size: int) -> tuple[int, int, bool]:
    """Where to begin, how many bytes, and whether a part was asked for. What is no single range of bytes is none.
    Raises OutOfRange `run.file_range`."""
    found = RANGE.fullmatch((asked or "").strip())
    if found is None or not (found["first"] or found["last"]):
        return 0, size, False
    if found["first"]:
        first, last = int(found["first"]), min(int(found["last"] or size), size - 1)
        if int(found["last"] or first) < first:
            return 0, size, False
    else:
        first, last = max(0, size - int(found["last"])), size - 1
    if first > last:
        raise OutOfRange(
            "run.file_range", f"The file has {size} bytes, and none of those that are asked for.", bytes=size
        )
    return first, last - first + 1, True
