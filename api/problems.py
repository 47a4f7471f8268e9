"""Every error leaves as application/problem+json with a stable code, whatever raised it."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domain.errors import AlmanacError, Busy, OutOfRange, Unauthenticated, Unavailable
from domain.reading import cut, refusal
from domain.values import Value

log = logging.getLogger("almanac.api")

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 2
MOST_TEXT = 1_000
"""Characters of a sentence or a path in an answer; what is repeated from a request may be as long as its body."""

ROUTING_CODES = {
    404: ("request.path_unknown", "There is nothing at this path."),
    405: ("request.method_not_allowed", "This path does not know this method."),
}


class Problem(Value):
    """An error: `code` is for programs and stays stable, `detail` is for people, `field` is the path of the field
    at fault. Some codes carry further members."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str | None = None
    hint: str | None = None


def problem(error: AlmanacError, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer that says this refusal."""
    body: dict[str, JsonValue] = dict(error.details) | _members(error.status, error.code, error.message)
    named = (("field", error.field), ("hint", error.hint))
    body |= {key: cut(value, MOST_TEXT) for key, value in named if value is not None}
    return JSONResponse(body, error.status, (headers or {}) | _headers(error), MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Makes `app` answer problems for all that it refuses."""
    app.add_exception_handler(AlmanacError, _refused)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(HTTPException, _unrouted)


class LastResort:
    """What nobody foresaw: logged under an id, and the answer names just the id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            log.info("api.client_gone %s %s", scope["method"], scope["path"])
        except Exception:
            error_id = secrets.token_hex(8)
            log.exception("api.unexpected id=%s %s %s", error_id, scope["method"], scope["path"])
            if not begun:
                await _unexpected(error_id)(scope, receive, send)


def _members(status: int, code: str, detail: str) -> dict[str, JsonValue]:
    return {
        "type": f"urn:almanac:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": cut(detail, MOST_TEXT),
    }


def _headers(error: AlmanacError) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="almanac"'}
    if isinstance(error, OutOfRange):
        return {"Content-Range": f"bytes */{error.details['bytes']}"}
    if isinstance(error, Busy | Unavailable):
        return {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return {}


def _unexpected(error_id: str) -> JSONResponse:
    detail = f"Something went wrong that should not; the server's log has it under {error_id}."
    body = _members(500, "internal", detail) | {"error_id": error_id}
    return JSONResponse(body, 500, media_type=MEDIA_TYPE)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AlmanacError)
    return problem(error)


async def _misread(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return problem(refusal(error.errors(), below=1))


async def _unrouted(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, detail = ROUTING_CODES.get(error.status_code, ("request.refused", str(error.detail)))
    headers = dict(error.headers or {})
    return JSONResponse(_members(error.status_code, code, detail), error.status_code, headers, MEDIA_TYPE)
