"""Schedules over REST."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field

from api.advising import Advice, SavedSchedule
from api.bodies import body_as, describe, optional_body_as
from api.parts import OPERATOR, IdempotencyKey, Key, PartsOf, ScheduleId, Search, WorkspaceName, one_key
from api.writing import Act, Replanned
from domain import secrets
from domain.errors import Invalid
from domain.run import Run
from domain.schedule import Condition, ScheduleDefinition, ScheduleView
from domain.values import Value
from readmodel.paging import LARGEST_PAGE, Page

router = APIRouter(prefix="/api/v1/workspaces/{workspace}/schedules", tags=["schedules"])

View = TypeVar("View", bound=ScheduleView)

ENTITY_TAG = re.compile(r'"([0-9]{1,15})"')


class ScheduleReplacement(ScheduleDefinition):
    """A whole definition, and the revision that it replaces unless `If-Match` says it."""

    revision: int | None = Field(default=None, ge=1)


class RunNowRequest(Value):
    key: Key | None = None
    """In place of the header `Idempotency-Key`."""


class ScheduleFilter(Value):
    condition: Condition | None = Field(default=None, description="Only schedules in this condition.")
    q: Search = Field(default="", description="Only schedules whose name has this in it, in any case.")
    target: Search | None = Field(default=None, description="Only schedules that run this, such as `pipeline:backup`.")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)
    cursor: Search | None = Field(default=None, description="The `next_cursor` of the page before.")


@router.post("", status_code=201, openapi_extra=describe(ScheduleDefinition))
async def create_schedule(
    parts: PartsOf,
    workspace: WorkspaceName,
    definition: Annotated[ScheduleDefinition, Depends(body_as(ScheduleDefinition))],
    request: Request,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> SavedSchedule:
    """Creates a schedule, which is active at once. `Location` is its address, `ETag` its revision."""
    now = datetime.now(UTC)
    view = await parts.writer.create(workspace, definition, by=OPERATOR, key=idempotency_key, now=now)
    response.headers["Location"] = request.url_for(
        "read_schedule", workspace=workspace, schedule_id=view.schedule_id
    ).path
    return _tagged(await parts.adviser.saved(view, now), response)


@router.get("")
async def list_schedules(
    parts: PartsOf, workspace: WorkspaceName, asked: Annotated[ScheduleFilter, Query()]
) -> Page[ScheduleView]:
    """Schedules by name, a page at a time."""
    page = await parts.queries.schedules(
        workspace,
        conditions=(asked.condition,) if asked.condition else (),
        search=asked.q,
        target=asked.target,
        cursor=asked.cursor,
        limit=asked.limit,
    )
    return Page(items=tuple(map(_shown, page.items)), next_cursor=page.next_cursor)


@router.get("/{schedule_id}")
async def read_schedule(
    parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, response: Response
) -> ScheduleView:
    """A schedule with its condition, its open runs and what comes next. `ETag` is its revision."""
    return _tagged(await parts.queries.schedule(workspace, schedule_id), response)


@router.get("/{schedule_id}/advice")
async def advise_on_schedule(parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId) -> Advice:
    """What its author should know: parents that are never due on its dates, are due later or end too late, and
    independent schedules of the same target that are due closer than the earlier one usually takes."""
    view = await parts.queries.schedule(workspace, schedule_id)
    return Advice(warnings=await parts.adviser.warnings(view, datetime.now(UTC)))


@router.put("/{schedule_id}", openapi_extra=describe(ScheduleReplacement))
async def replace_schedule(
    parts: PartsOf,
    workspace: WorkspaceName,
    schedule_id: ScheduleId,
    body: Annotated[ScheduleReplacement, Depends(body_as(ScheduleReplacement))],
    response: Response,
    if_match: Annotated[str | None, Header(description="The `ETag` of what is replaced.")] = None,
) -> SavedSchedule:
    """Replaces the whole definition: a field left out gets its default. Needs the revision that was read, in
    `If-Match` or in the body; 409 `schedule.revision_conflict` when somebody changed it in between."""
    now = datetime.now(UTC)
    view = await parts.writer.replace(
        workspace,
        schedule_id,
        ScheduleDefinition.model_validate(body.model_dump(exclude={"revision"})),
        expected_revision=_expected(body.revision, if_match),
        by=OPERATOR,
        now=now,
    )
    return _tagged(await parts.adviser.saved(view, now), response)


@router.delete("/{schedule_id}", status_code=204)
async def delete_schedule(parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId) -> None:
    """Deletes a schedule; 409 `schedule.has_dependents` while others wait for it. What it has waiting ends `skipped`;
    what runs goes on; its runs stay readable."""
    await parts.writer.act(workspace, schedule_id, Act.DELETE, by=OPERATOR)


@router.post("/{schedule_id}/pause")
async def pause_schedule(
    parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, response: Response
) -> ScheduleView:
    """Fires nothing until resumed. What is waiting ends `skipped`; what runs goes on."""
    return _tagged(await parts.writer.act(workspace, schedule_id, Act.PAUSE, by=OPERATOR), response)


@router.post("/{schedule_id}/resume")
async def resume_schedule(
    parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, response: Response
) -> ScheduleView:
    """Fires again, from now on: paused time is never missed. A block stays."""
    return _tagged(await parts.writer.act(workspace, schedule_id, Act.RESUME, by=OPERATOR), response)


@router.post("/{schedule_id}/unblock")
async def unblock_schedule(
    parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, response: Response
) -> ScheduleView:
    """Fires again, from now on, once the payload is found right; else 400 with what is wrong with it."""
    return _tagged(await parts.writer.act(workspace, schedule_id, Act.UNBLOCK, by=OPERATOR), response)


@router.post("/{schedule_id}/replan")
async def replan_schedule(
    parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, response: Response
) -> Replanned:
    """Computes what comes next anew, after a release of the zone data. Nothing is missed and nothing repeated. Answers
    which local times are due at another instant now."""
    replanned = await parts.writer.replan(workspace, schedule_id, by=OPERATOR)
    return replanned.model_copy(update={"schedule": _tagged(replanned.schedule, response)})


@router.post("/{schedule_id}/run-now", status_code=202, openapi_extra=describe(RunNowRequest, required=False))
async def run_schedule_now(
    parts: PartsOf,
    workspace: WorkspaceName,
    schedule_id: ScheduleId,
    body: Annotated[RunNowRequest | None, Depends(optional_body_as(RunNowRequest))],
    request: Request,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> Run:
    """Asks for a run now; its reference time is the request's. Allowed while paused; 409 `schedule.blocked` while
    blocked, 409 `schedule.run.overlap` while a run of it is active. The same key is the same run."""
    key = one_key(idempotency_key, body.key if body else None)
    run = await parts.writer.run_now(workspace, schedule_id, by=OPERATOR, key=key)
    response.headers["Location"] = request.url_for("read_run", workspace=workspace, run_id=run.run_id).path
    return run


def _tagged(view: View, response: Response) -> View:
    response.headers["ETag"] = f'"{view.revision}"'
    return _shown(view)


def _shown(view: View) -> View:
    """As it may be read: with a mask in the place of each secret."""
    payload = secrets.masked(view.definition.payload)
    return view.model_copy(update={"definition": view.definition.model_copy(update={"payload": payload})})


def _expected(revision: int | None, if_match: str | None) -> int:
    if if_match is None:
        if revision is None:
            raise Invalid(
                "request.field_missing",
                "The revision that this replaces is missing.",
                field="revision",
                hint="Send the revision you read, in the body or as If-Match.",
            )
        return revision
    tag = ENTITY_TAG.fullmatch(if_match.strip())
    if tag is None:
        raise Invalid(
            "request.if_match_invalid",
            "If-Match is not the ETag of a schedule.",
            field="If-Match",
            hint='It is the revision in double quotes, such as "3".',
        )
    if revision not in (None, int(tag[1])):
        raise Invalid("request.revision_ambiguous", "If-Match and the body name different revisions.", field="revision")
    return int(tag[1])
