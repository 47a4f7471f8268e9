"""A workflow's payload: which workflow type, on which task queue, and its arguments.

    {"workflow": "SettleDay", "task_queue": "settlement", "args": ["EUR", 3], "id_prefix": "settle-"}
    {"workflow": "SettleDay", "task_queue": "settlement", "args": {"currency": "EUR"},
     "parameter_bindings": {"day": {"source": "keyword", "name": "TODAY"}}}

A list is the workflow's arguments one by one; an object is its only argument, and what is bound becomes a part of it.
Anything else in a payload is refused by name.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pydantic import JsonValue

from domain.errors import Invalid
from domain.parameters import Given, Reference, bound
from domain.workflow_call import QUEUE, TYPE
from executors.protocol import Payload

KEYS = ("workflow", "task_queue", "args", "id_prefix", "parameter_bindings")

PREFIX = re.compile(r"[A-Za-z0-9_.:/@$-]{0,200}")

LARGEST_ARGS = 128 << 10
"""Bytes of JSON."""


class WorkflowPayload(NamedTuple):
    workflow: str
    task_queue: str
    args: list[JsonValue] | dict[str, JsonValue]
    id_prefix: str
    bindings: Given

    @property
    def target(self) -> str:
        return f"workflow:{self.workflow}@{self.task_queue}"

    def arguments(self, reference: Reference | None) -> list[JsonValue]:
        """As the workflow gets them, one by one; what depends on the reference is null without one. Raises Invalid
        `binding_invalid`."""
        if isinstance(self.args, list):
            return self.args
        values = {name: bound(name, binding, reference) for name, binding in self.bindings.items()}
        return [{**self.args, **values}] if self.args or values else []


def read(payload: Payload) -> WorkflowPayload:
    """Raises Invalid `schedule.validation.payload_invalid` unless the payload is exactly what a workflow's is,
    `binding_conflict` and `binding_invalid` for its bindings."""
    for key in payload:
        if key not in KEYS:
            raise _key_refused(key)
    asked = WorkflowPayload(
        workflow=_text(payload, "workflow", TYPE, "Write the workflow's type, such as SettleDay."),
        task_queue=_text(payload, "task_queue", QUEUE, "Write the task queue that its workers listen on."),
        args=_args(payload.get("args")),
        id_prefix=_text(payload, "id_prefix", PREFIX, "Write what its workflow id begins with, or leave it out.", ""),
        bindings=_bindings(payload.get("parameter_bindings")),
    )
    _check_bindings(asked)
    return asked


def _check_bindings(asked: WorkflowPayload) -> None:
    if isinstance(asked.args, list) and asked.args and asked.bindings:
        raise Invalid(
            "schedule.validation.binding_invalid",
            "Bindings name parts of one argument, and 'args' is a list of several.",
            field="payload.parameter_bindings",
            hint="Write 'args' as an object, which is then the workflow's only argument.",
        )
    for name, binding in asked.bindings.items():
        if isinstance(asked.args, dict) and name in asked.args:
            raise Invalid(
                "schedule.validation.binding_conflict",
                f"'{name}' has both a value in 'args' and a binding.",
                field=f"payload.parameter_bindings.{name}",
                hint="Keep one of the two.",
            )
        for key in binding if isinstance(binding, dict) else ():
            if key.startswith("reference"):
                raise _key_refused(key, f"parameter_bindings.{name}.{key}")
        bound(name, binding, None)


def _text(payload: Payload, key: str, form: re.Pattern[str], hint: str, default: str | None = None) -> str:
    found = payload.get(key, default)
    if not isinstance(found, str) or not form.fullmatch(found):
        what = "is missing" if found is None else "is none that there can be"
        raise _refused(key, f"'{key}' {what}.", hint)
    return found


def _args(found: JsonValue) -> list[JsonValue] | dict[str, JsonValue]:
    if found is None:
        return {}
    if not isinstance(found, list | dict):
        raise _refused("args", "'args' is neither a list nor an object.", "A list is the arguments one by one.")
    if len(json.dumps(found, ensure_ascii=False).encode(errors="replace")) > LARGEST_ARGS:
        raise _refused("args", f"'args' has more than {LARGEST_ARGS} bytes.", "Pass a reference to the data instead.")
    return found


def _bindings(found: JsonValue) -> Given:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _refused("parameter_bindings", "'parameter_bindings' is not an object.", "Write each name with its own.")
    return found


def _key_refused(key: str, path: str | None = None) -> Invalid:
    if key.startswith("reference"):
        hint = "The reference time is the scheduler's own, frozen for each run. Leave it out."
    else:
        hint = f"What it may have: {', '.join(KEYS)}."
    return _refused(path or key, f"'{key}' has no place in a workflow's payload.", hint)


def _refused(key: str, message: str, hint: str) -> Invalid:
    return Invalid("schedule.validation.payload_invalid", message, field=f"payload.{key}", hint=hint)
