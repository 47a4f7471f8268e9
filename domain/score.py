"""How a step that evaluates a run scores it: one JSON object a line.

    {"name": "rows_checked", "value": 12000, "note": "all of them"}

A name that comes again counts with its last value.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from domain import json_lines
from domain.values import Value


class ScoreItem(Value):
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    value: Annotated[float, Field(allow_inf_nan=False, strict=True)]
    note: Annotated[str, StringConstraints(max_length=1000)] | None = None


class Score(Value):
    """The body of a `score` document."""

    values: dict[str, float]
    notes: dict[str, str]
    problems: tuple[str, ...]
    """Which lines could not be read, and why."""


def read(text: str) -> Score | None:
    """What the lines say; None where there is none."""
    items, problems = json_lines.read(text, "score", lambda line: ScoreItem.model_validate(json_lines.object_of(line)))
    if not items and not problems:
        return None
    return Score(
        values={item.name: item.value for item in items},
        notes={item.name: item.note for item in items if item.note is not None},
        problems=problems,
    )
