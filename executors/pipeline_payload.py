"""A pipeline's payload: which pipeline, and values for its parameters. Anything else in it is refused by name."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from domain.errors import Invalid
from domain.parameters import Given
from executors.protocol import Payload

KEYS = ("pipeline", "version", "parameters", "parameter_bindings", "groups", "step")


class PipelinePayload(NamedTuple):
    pipeline: str
    parameters: Given
    parameter_bindings: Given
    groups: tuple[str, ...] | None = None
    """Only these; all without it."""
    step: str | None = None
    """Only this one; all without it."""


def read(payload: Payload) -> PipelinePayload:
    """Raises Invalid `schedule.validation.payload_invalid` unless the payload is exactly what a pipeline's is."""
    for key in payload:
        if key not in KEYS:
            raise _key_refused(key)
    pipeline, version = payload.get("pipeline"), payload.get("version")
    if not isinstance(pipeline, str) or not pipeline:
        raise _refused("pipeline", "A pipeline's payload names the pipeline.", "Write its name, such as finance/daily.")
    if version != "current":
        raise _version_refused(version)
    bindings = _by_name(payload, "parameter_bindings")
    for name, binding in bindings.items():
        for key in binding if isinstance(binding, dict) else ():
            if key.startswith("reference"):
                raise _key_refused(key, f"parameter_bindings.{name}.{key}")
    return PipelinePayload(pipeline, _by_name(payload, "parameters"), bindings, _groups(payload), _step(payload))


def _groups(payload: Payload) -> tuple[str, ...] | None:
    found = payload.get("groups")
    if found is None:
        return None
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise _refused(
            "groups", "'groups' is no list of names.", "Name some of the pipeline's groups, or leave it out."
        )
    return tuple(str(name) for name in found)


def _step(payload: Payload) -> str | None:
    found = payload.get("step")
    if found is not None and not isinstance(found, str):
        raise _refused("step", "'step' is no step's id.", "Name one of the pipeline's steps, or leave it out.")
    return found


def _by_name(payload: Payload, key: str) -> Given:
    found = payload.get(key, {})
    if not isinstance(found, dict):
        raise _refused(key, f"'{key}' is not an object.", "Write each parameter's name with what it gets.")
    return found


def _key_refused(key: str, path: str | None = None) -> Invalid:
    if key.startswith("reference"):
        hint = "The reference time is the scheduler's own, frozen for each run. Leave it out."
    else:
        hint = 'A payload is {"pipeline": "<name>", "version": "current"}; the rest of what it may have: '
        hint += f"{', '.join(KEYS[2:])}."
    return _refused(path or key, f"'{key}' has no place in a pipeline's payload.", hint)


def _version_refused(version: JsonValue) -> Invalid:
    hint = 'A schedule follows the pipeline\'s current version: write "current".'
    if version == "latest":
        return _refused("version", "'latest' selects nothing: a draft may be newer than what is current.", hint)
    if version is None:
        return _refused("version", "The payload says no version.", hint)
    return _refused("version", "A schedule can't be tied to one version.", hint)


def _refused(key: str, message: str, hint: str) -> Invalid:
    return Invalid("schedule.validation.payload_invalid", message, field=f"payload.{key}", hint=hint)
