"""Reading what programs leave behind, one JSON object a line, so that several can add to one file. A line that is none
is told beside the others: a slip in the accounts may neither fail a step that has done its work nor pass unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from domain.values import Value

MOST_LINES = 1_000

Item = TypeVar("Item", bound=Value)


def read(text: str, kind: str, item: Callable[[str], Item]) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """What `item` makes of each line that is not empty, and what is wrong with the others. `item` raises ValueError."""
    items: list[Item] = []
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if len(items) + len(problems) == MOST_LINES:
            problems.append(f"There are more than {MOST_LINES} lines; the others are not counted.")
            break
        try:
            items.append(item(line))
        except (ValueError, RecursionError) as error:
            problems.append(f"Line {number} is no {kind}: {_why(error)}.")
    return tuple(items), tuple(problems)


def object_of(line: str) -> dict[str, object]:
    """Raises ValueError for what is no JSON object, or could be written into no document."""
    found = json.loads(line, parse_constant=_no_constant)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    # Half a surrogate pair can't be written into any document.
    json.dumps(found, ensure_ascii=False).encode()
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'it'}: {first['msg'].removeprefix('Value error, ')}"
    if isinstance(error, UnicodeError):
        return "it has half a surrogate pair"
    return "it is not JSON" if isinstance(error, json.JSONDecodeError | RecursionError) else str(error)
