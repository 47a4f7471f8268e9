"""Pipelines over REST. Names have slashes, so a name is all that follows `pipelines/`. Acts are POSTs to names that end
in `/release` and `/current`, which nothing else is posted to, and no name has the segment `versions`: no path means
two things."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from api.bodies import body_as, describe, optional_body_as
from api.parts import OPERATOR, PartsOf, Search, WorkspaceName
from domain import pipeline
from domain.errors import Invalid, NotFound
from domain.pipeline import PipelineDefinition, PipelineVersion, PipelineView, VersionName, VersionRow
from domain.values import Value
from readmodel.paging import LARGEST_PAGE, Page

router = APIRouter(prefix="/api/v1/workspaces/{workspace}/pipelines", tags=["pipelines"])


class ReleaseRequest(Value):
    expected_sha256: str | None = None
    """The `draft_sha256` that was looked at; 409 when the draft is another by now."""


class PointRequest(Value):
    version: VersionName
    """A released version's number, or `draft` where the workspace's posture is `development`."""
    expected: VersionName | None = None
    """What was current when it was looked at; 409 when it is another by now."""


class PipelineVersions(Value):
    items: tuple[VersionRow, ...]
    """The newest first."""


class PipelineFilter(Value):
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)
    cursor: Search | None = Field(default=None, description="The `next_cursor` of the page before.")


@router.get("")
async def list_pipelines(
    parts: PartsOf, workspace: WorkspaceName, asked: Annotated[PipelineFilter, Query()]
) -> Page[PipelineView]:
    """Pipelines by name, a page at a time."""
    return await parts.pipelines.page(workspace, cursor=asked.cursor, limit=asked.limit)


@router.get("/{name:path}/versions")
async def list_versions(parts: PartsOf, workspace: WorkspaceName, name: str) -> PipelineVersions:
    """The released versions of a pipeline, and which of them is current."""
    return PipelineVersions(items=await parts.pipelines.versions(workspace, _known(name)))


@router.get("/{name:path}/versions/{version}")
async def read_version(
    parts: PartsOf, workspace: WorkspaceName, name: str, version: Annotated[int, Path(ge=1, le=2**31 - 1)]
) -> PipelineVersion:
    """One released version, whole. It never changes."""
    return await parts.pipelines.version(workspace, _known(name), version)


@router.get("/{name:path}")
async def read_pipeline(parts: PartsOf, workspace: WorkspaceName, name: str) -> PipelineView:
    """A pipeline: its draft, its released versions and which of them is current."""
    return await parts.pipelines.get(workspace, _known(name))


@router.put("/{name:path}", openapi_extra=describe(PipelineDefinition))
async def save_pipeline(
    parts: PartsOf,
    workspace: WorkspaceName,
    name: str,
    definition: Annotated[PipelineDefinition, Depends(body_as(PipelineDefinition))],
) -> PipelineView:
    """Saves the draft, which nothing runs until it is released. The same body again changes nothing."""
    if definition.name != name:
        raise Invalid(
            "request.name_mismatch", f"The path names '{name[:60]}' and the body another pipeline.", field="name"
        )
    return await parts.pipelines.save(workspace, definition, OPERATOR)


@router.post("/{name:path}/release", openapi_extra=describe(ReleaseRequest, required=False))
async def release_pipeline(
    parts: PartsOf,
    workspace: WorkspaceName,
    name: str,
    body: Annotated[ReleaseRequest | None, Depends(optional_body_as(ReleaseRequest))],
) -> PipelineView:
    """Makes the draft an immutable version and the current one. A draft that already is changes nothing."""
    expected = body.expected_sha256 if body else None
    return await parts.pipelines.release(workspace, _known(name), OPERATOR, expected_sha256=expected)


@router.post("/{name:path}/current", openapi_extra=describe(PointRequest))
async def point_pipeline(
    parts: PartsOf,
    workspace: WorkspaceName,
    name: str,
    body: Annotated[PointRequest, Depends(body_as(PointRequest))],
) -> PipelineView:
    """Moves the current pointer, which schedules follow, to a released version or to the draft. What was frozen before
    runs as it is. The same again changes nothing."""
    return await parts.pipelines.point(workspace, _known(name), body.version, OPERATOR, expected=body.expected)


@router.delete("/{name:path}", status_code=204)
async def discard_pipeline(parts: PartsOf, workspace: WorkspaceName, name: str) -> None:
    """The pipeline is gone; what ran of it stays. Schedules that run it, which `GET …/schedules?target=pipeline:<name>`
    lists, block at their next run until they are pointed at another or deleted."""
    await parts.pipelines.discard(workspace, _known(name), OPERATOR)


def _known(name: str) -> str:
    """Spares the database what can't be a name."""
    if not pipeline.NAME.fullmatch(name):
        raise NotFound("pipeline.not_found", "There is no such pipeline in this workspace.")
    return name
