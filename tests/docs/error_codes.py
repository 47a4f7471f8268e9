"""Every code with which Almanac refuses something, read from the source: where a refusal is made, its code stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from api.bodies import UnsupportedMediaType
from api.problems import ROUTING_CODES
from domain import errors, reading
from domain.errors import AlmanacError

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("domain", "readmodel", "evidence", "executors", "activities", "workflows"),
    *("api", "cli", "embedded", "worker"),
)

KINDS: dict[str, type[AlmanacError]] = {kind.__name__: kind for kind in (*AlmanacError.__subclasses__(),)}
assert UnsupportedMediaType in KINDS.values()
assert errors.Invalid in KINDS.values()

FAMILIES = {
    "domain/cron.py": ("refuse", "schedule.validation.cron_"),
    "domain/cron_field.py": ("refuse", "schedule.validation.cron_"),
    "domain/zone_names.py": ("_refuse", "schedule.validation.zone_"),
}
"""Files in which one function makes the refusals, and what it puts before its first argument."""


class Refusal(NamedTuple):
    code: str
    status: int
    says: str
    """The sentence, with `…` for what is filled in; empty where it is put together elsewhere."""


def refusals() -> dict[str, Refusal]:
    """By code, with the first sentence that the source has for it."""
    found: dict[str, Refusal] = {}
    for refusal in (*_beyond_calls(), *_called()):
        known = found.get(refusal.code)
        if known is None or not known.says:
            found[refusal.code] = refusal
    return dict(sorted(found.items()))


def _called() -> Iterator[Refusal]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            function, prefix = FAMILIES.get(file.relative_to(ROOT).as_posix(), ("", ""))
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                    continue
                first = _text(node.args[0])
                says = _text(node.args[1]) if len(node.args) > 1 else ""
                name = node.func.id if isinstance(node.func, ast.Name) else None
                if name in KINDS:
                    yield Refusal(first, KINDS[name].status, says)
                elif name == function:
                    yield Refusal(f"{prefix}{first}", HTTPStatus.BAD_REQUEST, says)


def _beyond_calls() -> Iterator[Refusal]:
    """Codes that stand in tables."""
    for status, (code, says) in ROUTING_CODES.items():
        yield Refusal(code, status, says)
    yield Refusal("request.refused", HTTPStatus.BAD_REQUEST, "Refused before it reached any path.")
    yield Refusal("internal", HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong that should not; the log has it.")
    sentences = {
        "request.field_unknown": "There is no field '…' here.",
        "request.field_missing": "The field '…' is missing.",
        "request.field_type": "The field '…' is not right: it has another type.",
        "request.field_invalid": "The field '…' is not right: its value is not allowed.",
    }
    for code in {*reading.CODES.values(), *sentences}:
        yield Refusal(code, HTTPStatus.BAD_REQUEST, sentences.get(code, ""))


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.FormattedValue():
            return "…"
        case _:
            return ""
