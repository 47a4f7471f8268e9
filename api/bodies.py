"""Reads request bodies: as far as the limit, as strict JSON, as a domain value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, JsonValue

from domain.errors import AlmanacError, Invalid, TooLarge
from domain.reading import read

Model = TypeVar("Model", bound=BaseModel)

MAX_DEPTH = 64
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class UnsupportedMediaType(AlmanacError):
    status = 415


def body_as(model: type[Model]) -> Callable[[Request], Coroutine[Any, Any, Model]]:
    """A dependency that reads the body as `model`. Raises Invalid, TooLarge and UnsupportedMediaType."""

    async def dependency(request: Request) -> Model:
        return read(model, await _checked(request))

    return dependency


def optional_body_as(model: type[Model]) -> Callable[[Request], Coroutine[Any, Any, Model | None]]:
    """The same for a body that may be absent."""

    async def dependency(request: Request) -> Model | None:
        if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
            return None
        return read(model, await _checked(request))

    return dependency


def describe(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """What OpenAPI says of such a body; `openapi.document` adds the schema it refers to."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def check_json(text: str) -> None:
    """Refuses what is not plain JSON, or what some reader would take differently: doubled keys, NaN, infinite
    numbers, U+0000 and lone surrogates in strings, nesting deeper than 64."""
    try:
        _check_value(json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), MAX_DEPTH)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise Invalid("request.not_json", f"The body is not JSON: {error}.") from error


async def _checked(request: Request) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType(
            "request.content_type",
            f"The body is sent as {media_type or 'nothing in particular'}.",
            hint="Send JSON, with the header 'Content-Type: application/json'.",
        )
    body = await limited_body(request, request.app.state.parts.settings.max_body_bytes)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Invalid("request.not_json", f"The body is not UTF-8: {error.reason} at byte {error.start}.") from error
    check_json(text)
    return text


async def limited_body(request: Request, limit: int) -> bytes:
    """The body as it was sent. Raises TooLarge `request.body_too_large`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLarge("request.body_too_large", f"The body has more than {limit} bytes.", limit_bytes=limit)
    return bytes(body)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        # First of all: what can't be stored can't be repeated in an answer either.
        _check_text(key)
        if key in found:
            raise Invalid("request.key_duplicate", f"The key '{key[:60]}' is there twice in one object.")
        found[key] = value
    return found


def _no_constant(name: str) -> None:
    raise Invalid("request.not_json", f"The body is not JSON: {name} is not a JSON number.")


def _check_value(value: JsonValue, depth: int) -> None:
    if depth < 0:
        raise _too_deep()
    match value:
        case str():
            _check_text(value)
        case float() if not math.isfinite(value):
            raise Invalid("request.not_json", "The body has a number that is too large.")
        case list():
            for item in value:
                _check_value(item, depth - 1)
        case dict():
            for item in value.values():
                _check_value(item, depth - 1)
        case _:
            pass


def _check_text(text: str) -> None:
    if UNSTORABLE.search(text):
        raise Invalid("request.text_unstorable", "A string has U+0000 or half a surrogate pair, which can't be stored.")


def _too_deep() -> Invalid:
    return Invalid("request.too_deep", f"The body is nested deeper than {MAX_DEPTH} levels.")
