"""Pages by keyset: a cursor says after which row the next page begins, so rows that come and go in between
neither repeat nor hide others."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Generic, TypeVar

from domain.errors import Invalid
from domain.values import Value

Item = TypeVar("Item")

LARGEST_PAGE = 500
_DIGEST_BYTES = 9


class Page(Value, Generic[Item]):
    items: tuple[Item, ...]
    next_cursor: str | None
    """Asks for the page after this one; absent on the last."""


def page_of(listing: str, found: Sequence[tuple[Item, tuple[str, ...]]], limit: int) -> Page[Item]:
    """The page from `found`, up to `limit` + 1 items each with its position in `listing`."""
    shown = found[:limit]
    return Page(
        items=tuple(item for item, _ in shown),
        next_cursor=_cursor(listing, shown[-1][1]) if len(found) > limit else None,
    )


def check_limit(limit: int) -> int:
    """One more row than the page shows, which tells whether there is a next. Raises Invalid `page.limit_invalid`."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise Invalid("page.limit_invalid", f"A page has 1 to {LARGEST_PAGE} rows.", field="limit")
    return limit + 1


def position_of(listing: str, cursor: str, parts: int) -> tuple[str, ...]:
    """The position of `parts` parts that `cursor` names. Raises Invalid `page.cursor_invalid` for a cursor that
    was altered or belongs to another listing."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        position = tuple(json.loads(raw[_DIGEST_BYTES:]))
    except (ValueError, TypeError, RecursionError):
        raise invalid_cursor() from None
    if len(position) != parts or not all(isinstance(part, str) for part in position):
        raise invalid_cursor()
    if _cursor(listing, position) != cursor:
        raise invalid_cursor()
    return position


def invalid_cursor() -> Invalid:
    return Invalid(
        "page.cursor_invalid",
        "The cursor is not one that this list gave out; begin again without a cursor.",
        field="cursor",
    )


def _cursor(listing: str, position: tuple[str, ...]) -> str:
    body = json.dumps(position, separators=(",", ":")).encode()
    digest = hashlib.sha256(json.dumps(listing).encode() + body).digest()[:_DIGEST_BYTES]
    return base64.urlsafe_b64encode(digest + body).decode().rstrip("=")
