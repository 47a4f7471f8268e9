"""A pipeline's runs over REST: one is asked for, and the folders say which run is current and which the latest, by what
is recorded of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from api.bodies import describe, optional_body_as
from api.parts import OPERATOR, IdempotencyKey, Key, Parts, PartsOf, Search, WorkspaceName, one_key
from api.run_files import RunEvidence, evidence_in, storage_of
from domain import pipeline
from domain.errors import NotFound
from domain.manual_run import ManualRun
from domain.run import Run
from domain.values import Value
from evidence import index
from evidence.book import RunFolder
from evidence.folders import runs_directory
from evidence.index import Entry, Latest
from readmodel.paging import LARGEST_PAGE, check_limit, page_of, position_of

router = APIRouter(prefix="/api/v1/workspaces/{workspace}/pipelines", tags=["pipelines"])

Kind = Literal["schedule", "hook", "manual", "unknown_legacy"]


class FolderFilter(Value):
    kind: list[Kind] = Field(default=[], description="Only runs of one of these kinds.")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)
    cursor: Search | None = Field(default=None, description="The `next_cursor` of the page before.")


class ManualRunRequest(ManualRun):
    key: Key | None = None
    """In place of the header `Idempotency-Key`."""


class PipelineRuns(Latest):
    items: tuple[Entry, ...]
    """The runs with a folder, or with one that has expired; the one that began last comes first."""
    next_cursor: str | None


@router.get("/{name:path}/runs")
async def list_pipeline_runs(
    parts: PartsOf, workspace: WorkspaceName, name: str, asked: Annotated[FolderFilter, Query()]
) -> PipelineRuns:
    """The run folders of a pipeline, newest first, and which of its runs is the current and which the latest. They are
    told by what is recorded of them: a folder's number says neither."""
    await _check_known(parts, workspace, name)
    runs = Path(runs_directory(storage_of(parts), workspace, name))
    entries = (await asyncio.to_thread(index.read, runs)).runs
    meant = [entry for entry in reversed(entries) if not asked.kind or entry.kind in asked.kind]
    latest = index.latest(meant)
    listing = f"pipeline-runs/{workspace}/{name}"
    if asked.cursor is not None:
        before = position_of(listing, asked.cursor, 2)
        meant = [entry for entry in meant if _position(entry) < before]
    shown = [(entry, _position(entry)) for entry in islice(meant, check_limit(asked.limit))]
    page = page_of(listing, shown, asked.limit)
    return PipelineRuns(**dict(latest), items=page.items, next_cursor=page.next_cursor)


@router.get("/{name:path}/runs/{folder}/evidence")
async def read_folder_evidence(parts: PartsOf, workspace: WorkspaceName, name: str, folder: str) -> RunEvidence:
    """What is in one of a pipeline's run folders, for folders from before runs had ids: a run's evidence is asked for
    by its id. Documents without an identity are `unknown_legacy`."""
    await _check_known(parts, workspace, name)
    path = Path(runs_directory(storage_of(parts), workspace, name)) / folder
    if RunFolder.parse(folder) is None or not await asyncio.to_thread(path.is_dir):
        raise NotFound("pipeline.folder_not_found", "This pipeline has no such run folder.")
    return await asyncio.to_thread(evidence_in, path)


@router.post("/{name:path}/runs", status_code=202, openapi_extra=describe(ManualRunRequest, required=False))
async def run_pipeline(
    parts: PartsOf,
    workspace: WorkspaceName,
    name: str,
    body: Annotated[ManualRunRequest | None, Depends(optional_body_as(ManualRunRequest))],
    request: Request,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> Run:
    """Runs the current version of a pipeline by hand, without a schedule. The run waits for its turn on the pipeline's
    lane, gets the manual slot `iteration-0` as its folder, and blocks nothing. The same key is the same run."""
    await _check_known(parts, workspace, name)
    asked = body or ManualRunRequest()
    key = one_key(idempotency_key, asked.key)
    now = datetime.now(UTC)
    run = await parts.manual_runs.start(workspace, name, asked, by=OPERATOR, key=key, now=now)
    response.headers["Location"] = request.url_for("read_run", workspace=workspace, run_id=run.run_id).path
    return run


async def _check_known(parts: Parts, workspace: str, name: str) -> None:
    """Spares the database what can't be a name."""
    if not pipeline.NAME.fullmatch(name):
        raise NotFound("pipeline.not_found", "There is no such pipeline in this workspace.")
    await parts.pipelines.get(workspace, name)


def _position(entry: Entry) -> tuple[str, ...]:
    began, key = index.position(entry)
    return began.isoformat(), key
