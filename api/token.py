"""The bearer token: read from a file that only its owner can read, compared in constant time."""

from __future__ import annotations

import base64
import binascii
import hmac
import stat
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import problem
from domain.authority import SYSTEM, check_not_system
from domain.errors import AlmanacError, Forbidden, Unauthenticated

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
SIGNED_PATHS = "/api/v1/hooks/"
"""Below it the sender proves by a signature who it is."""
MIN_LENGTH = 16


class TokenUnusable(Exception):
    """The token file can't be used; the message says why and what to do, in one line."""


def read_token(path: Path) -> str:
    """The token in `path`. Raises TokenUnusable, also when others than its owner may read the file."""
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenUnusable(f"The token file {path} can't be read: {error}.") from error
    if stat.S_IMODE(mode) & 0o077:
        raise TokenUnusable(f"The token file {path} can be read by others than its owner: run chmod 600 {path}.")
    if len(token) < MIN_LENGTH or not token.isprintable() or " " in token:
        raise TokenUnusable(f"The token file {path} must hold one word of at least {MIN_LENGTH} characters.")
    if token.lower() == SYSTEM.name:
        raise TokenUnusable(f"The token file {path} has the name of the system identity, which has no credential.")
    return token


class RequireToken:
    """Lets only requests with the token through; the health paths are open to all, and
    webhooks have signatures."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["path"]) or self._admits(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        await problem(_refusal(Headers(scope=scope).get("authorization")))(scope, receive, send)

    def _admits(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = f"{scheme.lower()} {token.strip()}"
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._expected)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(SIGNED_PATHS)


def _refusal(given: str | None) -> AlmanacError:
    if given is not None:
        try:
            check_not_system(_named(given))
        except Forbidden as refusal:
            return refusal
        return Unauthenticated("auth.token_wrong", "The bearer token is not the one of this server.")
    return Unauthenticated(
        "auth.token_missing",
        "The request has no bearer token.",
        hint="Send the header 'Authorization: Bearer <token>'; the token is in the server's token file.",
    )


def _named(authorization: str) -> str:
    """Who the header says it is: the user of Basic, else its credential as it stands."""
    scheme, _, credential = authorization.partition(" ")
    if scheme.lower() != "basic":
        return credential
    try:
        return base64.b64decode(credential).decode("utf-8", "replace").partition(":")[0]
    except (binascii.Error, ValueError):
        return ""
