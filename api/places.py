"""What is not about one thing in a workspace: workspaces themselves, the preview of a pattern, and health."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from api.bodies import describe, optional_body_as
from api.parts import OPERATOR, PartsOf, Search
from api.problems import problem
from domain.errors import Unavailable
from domain.preview import Preview, preview
from domain.values import Value
from domain.workspace import Posture, Workspace

router = APIRouter()


class PreviewRequest(Value):
    cron: Search = Field(
        description="Five fields: minute hour day-of-month month day-of-week.", examples=["0 9 * * 1-5"]
    )
    timezone: Search = Field(description="IANA zone id or `UTC`.", examples=["Europe/Berlin"])
    count: int = Field(default=5, ge=1, le=100, description="How many occurrences.")


class WorkspaceChange(Value):
    active: bool | None = None
    """An inactive workspace fires nothing and starts nothing. What fell due meanwhile is dealt with as after an outage
    when it is active again."""
    posture: Posture | None = None
    """In `development` a pipeline's current pointer may be moved to its draft."""


class Alive(Value):
    status: Literal["alive"] = "alive"


class Ready(Value):
    database: Literal["ready"] = "ready"
    temporal: Literal["ready"] = "ready"


@router.put(
    "/api/v1/workspaces/{workspace}",
    tags=["workspaces"],
    openapi_extra=describe(WorkspaceChange, required=False),
)
async def ensure_workspace(
    parts: PartsOf,
    workspace: str,
    change: Annotated[WorkspaceChange | None, Depends(optional_body_as(WorkspaceChange))],
) -> Workspace:
    """Makes a workspace, unless it is there; `default` needs no making. With `active` it is then made active or
    inactive, and all its schedules are told. 409 `workspace.drafts_current` for a `posture` that forbids what is
    current. Repeat the request if it was broken off."""
    made = await parts.workspaces.ensure(workspace)
    if change is not None and change.posture is not None:
        made = await parts.workspaces.set_posture(workspace, change.posture, OPERATOR)
    if change is not None and change.active is not None:
        made = await parts.writer.set_workspace_active(workspace, change.active, by=OPERATOR)
    return made


@router.get("/api/v1/workspaces/{workspace}", tags=["workspaces"])
async def read_workspace(parts: PartsOf, workspace: str) -> Workspace:
    """Whether it is active, and its posture."""
    return await parts.workspaces.require(workspace)


@router.get("/api/v1/preview", tags=["preview"])
async def preview_pattern(asked: Annotated[PreviewRequest, Query()]) -> Preview:
    """When a pattern is due, from now on: local time, offset, instant, the local time that was meant, and what the
    rule did about the zone's changes. Nothing is saved."""
    return await asyncio.to_thread(preview, asked.cron, asked.timezone, datetime.now(UTC), asked.count)


@router.get("/healthz", tags=["health"])
async def alive() -> Alive:
    """The process answers; open to all."""
    return Alive()


@router.get("/readyz", tags=["health"], response_model=Ready)
async def ready(parts: PartsOf) -> Ready | JSONResponse:
    """Whether the database and Temporal answer; 503 names what does not. Open to all."""
    database, temporal = await asyncio.gather(parts.database.healthy(), parts.workflows.healthy())
    states = {"database": _word(database), "temporal": _word(temporal)}
    silent = [name for name, state in states.items() if state != "ready"]
    if not silent:
        return Ready()
    said = f"No answer from: {', '.join(silent)}. Requests that need it are refused until it is back."
    return problem(Unavailable("api.not_ready", said, **states))


def _word(healthy: bool) -> str:
    return "ready" if healthy else "unavailable"
