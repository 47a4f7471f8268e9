"""The bearer token: read from a file that only its owner can read, compared in constant time."""

from __future__ import annotations

import hmac
import stat
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import problem
from domain.errors import Unauthenticated

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
        await problem(_refusal("authorization" in Headers(scope=scope)))(scope, receive, send)

    def _admits(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = f"{scheme.lower()} {token.strip()}"
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._expected)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(SIGNED_PATHS)


def _refusal(given: bool) -> Unauthenticated:
    if given:
        return Unauthenticated("auth.token_wrong", "The bearer token is not the one of this server.")
    return Unauthenticated(
        "auth.token_missing",
        "The request has no bearer token.",
        hint="Send the header 'Authorization: Bearer <token>'; the token is in the server's token file.",
    )
