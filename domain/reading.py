"""Reads a domain value from JSON text, and says every mistake in it by field path and stable code.

Reading is strict: a number in quotes is a mistake, not a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from domain.errors import Invalid

Model = TypeVar("Model", bound=BaseModel)

MOST_MISTAKES = 20
"""More are counted, not told: an answer must not be many times as long as the question."""
MOST_PATH = 200
"""Characters of a field's path that are repeated; every field that exists is shorter."""

CODES = {
    "extra_forbidden": "request.field_unknown",
    "missing": "request.field_missing",
    "json_invalid": "request.not_json",
    "invalid_key": "request.field_type",
}


def read(model: type[Model], text: str | bytes) -> Model:
    """The value that `text` (JSON) describes. Raises Invalid, see `refusal`."""
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise refusal(error.errors(include_url=False), known=tuple(model.model_fields)) from error


def refusal(errors: Sequence[Mapping[str, Any]], *, known: Iterable[str] = (), below: int = 0) -> Invalid:
    """One refusal for all mistakes pydantic found: the first one's code, field and sentence; the first 20 as `errors`
    where there are several, and how many more there are as `errors_left_out`. `below` leading parts of each path are
    not the user's and are cut off."""
    mistakes = [_mistake(error, tuple(known), below) for error in errors[:MOST_MISTAKES]]
    first = mistakes[0]
    details: dict[str, Any] = {"errors": mistakes} if len(mistakes) > 1 else {}
    if len(errors) > MOST_MISTAKES:
        details["errors_left_out"] = len(errors) - MOST_MISTAKES
    return Invalid(first["code"], first["message"], field=first["field"], hint=first.get("hint"), **details)


def cut(text: str, most: int) -> str:
    """At most `most` characters of `text`, the last one then an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _mistake(error: Mapping[str, Any], known: tuple[str, ...], below: int) -> dict[str, Any]:
    path = error["loc"][below:]
    field = cut(".".join(str(part) for part in path), MOST_PATH) or None
    code = _code(error["type"])
    mistake = {"code": code, "field": field, "message": _sentence(code, field, error["msg"])}
    if code == "request.field_unknown":
        near = get_close_matches(str(path[-1]), known, n=1) if len(path) == 1 else []
        mistake["hint"] = f"Did you mean '{near[0]}'?" if near else "Leave it out."
    return mistake


def _code(kind: str) -> str:
    if kind in CODES:
        return CODES[kind]
    return "request.field_type" if kind.endswith(("_type", "_parsing")) else "request.field_invalid"


def _sentence(code: str, field: str | None, said: str) -> str:
    if code == "request.field_unknown":
        return f"There is no field '{field}' here."
    if code == "request.field_missing":
        return f"The field '{field}' is missing."
    said = said[0].lower() + said[1:].rstrip(".") if said else "it is not valid"
    return f"The field '{field}' is not right: {said}." if field else f"The body is not right: {said}."
