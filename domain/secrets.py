"""Values that nobody may read again: how a sealed one stands in a payload, and what is shown in its place.

A sealed value is `{"sealed": "<token>"}`. Only who has the key can open the token; here it is just carried along.
"""

from __future__ import annotations

from pydantic import JsonValue

MASK = "********"

SHORTEST = 4
"""Shorter ones would be found all over what a program prints."""

SEALED = "sealed"


def sealed(token: str) -> JsonValue:
    return {SEALED: token}


def token_of(value: JsonValue) -> str | None:
    """The token of a sealed value; None for any other value."""
    match value:
        case {"sealed": str() as token, **rest} if not rest:
            return token
        case _:
            return None


def masked(value: JsonValue) -> JsonValue:
    """The same, with the mask in the place of each sealed value."""
    if token_of(value) is not None:
        return MASK
    match value:
        case dict():
            return {key: masked(part) for key, part in value.items()}
        case list():
            return [masked(part) for part in value]
        case _:
            return value


def masked_like(value: JsonValue, shown: JsonValue) -> JsonValue:
    """`value` with the mask wherever `shown` has it."""
    if shown == MASK:
        return MASK
    if isinstance(value, dict) and isinstance(shown, dict):
        return {key: masked_like(part, shown.get(key)) for key, part in value.items()}
    return value
