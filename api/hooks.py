"""Webhooks over REST: made and rotated by whoever has the token, delivered by whoever has the secret."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Request

from api import signature
from api.bodies import limited_body
from api.parts import OPERATOR, PartsOf, ScheduleId, WorkspaceName
from domain.run import Origin, RunState
from domain.values import Value
from readmodel.hooks import HookView

PATH = "/api/v1/workspaces/{workspace}/schedules/{schedule_id}/hooks"

router = APIRouter()


class NewSecret(HookView):
    path: str
    """Where deliveries are sent, by POST."""
    secret: str
    """Shown this once."""


class ScheduleHooks(Value):
    items: tuple[HookView, ...]


class Delivered(Value):
    run_id: str
    state: RunState


@router.post(PATH, status_code=201, tags=["hooks"])
async def create_hook(parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, request: Request) -> NewSecret:
    """Makes a webhook that runs the schedule. Its secret is shown in this answer and never again."""
    await parts.queries.schedule(workspace, schedule_id)
    hook_id, secret = f"h{secrets.token_hex(12)}", signature.new_secret()
    return _shown(await parts.hooks.create(workspace, schedule_id, hook_id, secret, OPERATOR), secret, request)


@router.get(PATH, tags=["hooks"])
async def list_hooks(parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId) -> ScheduleHooks:
    """The webhooks of a schedule, without their secrets."""
    await parts.queries.schedule(workspace, schedule_id)
    return ScheduleHooks(items=await parts.hooks.of_schedule(workspace, schedule_id))


@router.post(PATH + "/{hook_id}/rotate", tags=["hooks"])
async def rotate_hook(
    parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, hook_id: str, request: Request
) -> NewSecret:
    """A new secret, shown in this answer and never again. The former one is good for another 24 hours."""
    secret, now = signature.new_secret(), datetime.now(UTC)
    return _shown(await parts.hooks.rotate(workspace, schedule_id, hook_id, secret, OPERATOR, now), secret, request)


@router.delete(PATH + "/{hook_id}", status_code=204, tags=["hooks"])
async def delete_hook(parts: PartsOf, workspace: WorkspaceName, schedule_id: ScheduleId, hook_id: str) -> None:
    """Takes a webhook's secrets back at once."""
    await parts.hooks.delete(workspace, schedule_id, hook_id, OPERATOR)


@router.post("/api/v1/hooks/{hook_id}", status_code=202, tags=["webhooks"])
async def deliver_hook(
    parts: PartsOf,
    hook_id: str,
    request: Request,
    timestamp: Annotated[str, Header(alias="Almanac-Timestamp", description="When it was sent, in Unix seconds.")] = "",
    given: Annotated[str, Header(alias="Almanac-Signature", description="`v1=` and the signature in hex.")] = "",
) -> Delivered:
    """Runs the webhook's schedule, as Run now does and with the same refusals. Needs no token, but a signature by
    HMAC-SHA256 over timestamp, dot and body, at most 300 s old; the same timestamp and body are the same run."""
    body = await limited_body(request, parts.settings.max_body_bytes)
    now = datetime.now(UTC)
    known = await parts.hooks.known(hook_id, now) if hook_id.isascii() and hook_id.isalnum() else None
    delivery = signature.check(known.secrets if known else (), timestamp, given, body, now)
    assert known is not None
    run = await parts.writer.run_now(
        known.workspace,
        known.schedule_id,
        by=f"webhook {known.hook_id}",
        key=f"{known.hook_id}-{delivery}",
        origin=Origin.HOOK,
    )
    return Delivered(run_id=run.run_id, state=run.state)


def _shown(hook: HookView, secret: str, request: Request) -> NewSecret:
    path = request.url_for("deliver_hook", hook_id=hook.hook_id).path
    return NewSecret(**hook.model_dump(), path=path, secret=secret)
