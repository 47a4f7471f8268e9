"""What PostgreSQL cannot hold: the character U+0000, halves of a surrogate pair, and numbers that are none.

An event has happened and must not be lost, so there each such character becomes U+FFFD, where a reader sees it.
A request can still be refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from domain.errors import Invalid

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(record: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with U+FFFD for each character that can't be stored, and its name for a number that can't."""
    return {storable_text(key): _clean(value) for key, value in record.items()}


def storable_text(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


def _clean(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return storable_text(value)
        case float() if not math.isfinite(value):
            return str(value)
        case list():
            return [_clean(item) for item in value]
        case dict():
            return storable(value)
        case _:
            return value


def refuse_unstorable(value: JsonValue, field: str) -> None:
    """Raises Invalid `text.character_invalid` at the path, below `field`, of the first text that can't be stored."""
    match value:
        case str() if _UNSTORABLE.search(value):
            raise Invalid(
                "text.character_invalid",
                f"'{field}' has a character that can't be stored (U+0000 or half a surrogate pair); remove it.",
                field=field,
            )
        case list():
            for index, item in enumerate(value):
                refuse_unstorable(item, f"{field}.{index}")
        case dict():
            for key, item in value.items():
                refuse_unstorable(key, f"{field}.{storable_text(key)}")
                refuse_unstorable(item, f"{field}.{key}")
