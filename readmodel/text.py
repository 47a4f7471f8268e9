"""What PostgreSQL cannot hold: the character U+0000, halves of a surrogate pair, and numbers that are none.

An event has happened and must not be lost, so there each such character becomes U+FFFD, where a reader sees it.
A request can still be refused.
"""

from __future__ import annotations

import math
import re

from pydantic import JsonValue

from domain.errors import Invalid

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: JsonValue) -> JsonValue:
    """`value` with U+FFFD for each character that can't be stored, and its name for a number that can't."""
    match value:
        case str():
            return storable_text(value)
        case float() if not math.isfinite(value):
            return str(value)
        case list():
            return [storable(item) for item in value]
        case dict():
            return {storable_text(key): storable(item) for key, item in value.items()}
        case _:
            return value


def storable_text(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


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
