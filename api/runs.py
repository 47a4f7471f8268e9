"""Runs and their trails over REST."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from api.parts import OPERATOR, PartsOf, RunId, Search, WorkspaceName
from domain.run import Origin, Run, RunState, TrailRow
from domain.values import Value
from readmodel.paging import LARGEST_PAGE, Page
from readmodel.results import RunResult

router = APIRouter(prefix="/api/v1/workspaces/{workspace}/runs", tags=["runs"])


class RunFilter(Value):
    schedule_id: Search | None = Field(default=None, description="Only runs of this schedule.")
    state: list[RunState] = Field(default=[], description="Only runs in one of these states.")
    origin: list[Origin] = Field(default=[], description="Only runs of one of these origins.")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)
    cursor: Search | None = Field(default=None, description="The `next_cursor` of the page before.")


class Trail(Value):
    items: tuple[TrailRow, ...]


@router.get("")
async def list_runs(parts: PartsOf, workspace: WorkspaceName, asked: Annotated[RunFilter, Query()]) -> Page[Run]:
    """Runs, the newest first, a page at a time. Runs of deleted schedules are among them."""
    return await parts.queries.runs(
        workspace,
        schedule_id=asked.schedule_id,
        states=asked.state,
        origins=asked.origin,
        cursor=asked.cursor,
        limit=asked.limit,
    )


@router.get("/{run_id}")
async def read_run(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> Run:
    """A run, with what was frozen for it and how it ended."""
    return await parts.queries.run(workspace, run_id)


@router.get("/{run_id}/trail")
async def read_trail(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> Trail:
    """Everything that happened to a run, in order."""
    return Trail(items=await parts.queries.trail(workspace, run_id))


@router.get("/{run_id}/result")
async def read_result(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> RunResult:
    """The small result of a run's last step, for the pipeline's `result_ttl_seconds` after its end. 404 `run.no_result`
    and `run.result_expired`."""
    run = await parts.queries.run(workspace, run_id)
    return await parts.results.of(run, datetime.now(UTC))


@router.post("/{run_id}/cancel", status_code=202)
async def cancel_run(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> Run:
    """Asks for the end of a run and answers it as it still is. What runs is stopped, all its processes with it, and
    ends `cancelled`; what waits ends `skipped`. 409 `run.ended` when it has ended before."""
    return await parts.writer.cancel(workspace, run_id, by=OPERATOR)
