"""A Temporal workflow that a step starts and waits for."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from domain import placeholders
from domain.values import Value

TYPE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:$-]{0,199}")
QUEUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@$-]{0,199}")


class WorkflowCall(Value):
    """In every text of the arguments `${name}` stands for a parameter that is not secret, or for a variable that all
    groups have, and `$$` for a dollar sign. A text that is nothing but a parameter's `${name}` becomes its value, so
    that a number stays a number."""

    workflow: Annotated[str, StringConstraints(pattern=f"^{TYPE.pattern}$")]
    """Its type."""
    task_queue: Annotated[str, StringConstraints(pattern=f"^{QUEUE.pattern}$")]
    args: Annotated[list[JsonValue], Field(max_length=100)] = []


def check_call(call: WorkflowCall, known: set[str], field: str) -> None:
    """Refuses what names something that the call does not have. `known` is what it may name."""
    placeholders.check({"args": placeholders.texts(call.args)}, known, field)
