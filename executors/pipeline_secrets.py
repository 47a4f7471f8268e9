"""The secret parameters of a pipeline's payload: sealed when it is saved, checked whenever it is read, and opened for
its steps alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from domain.errors import Invalid
from domain.parameters import Parameter, Resolved, check_secret
from domain.secrets import MASK, SHORTEST, masked, sealed, token_of
from executors import pipeline_payload
from executors.protocol import Payload
from executors.vault import Place, Unopened, Vault


class Opened(NamedTuple):
    """The parameters of one run, for its steps."""

    shown: Resolved
    """With a mask for each secret."""
    secrets: Mapping[str, str]

    @property
    def texts(self) -> dict[str, str]:
        """Each as a text; a parameter without a value is an empty one, true and false are written as in JSON."""
        return {
            name: "" if value is None else value if isinstance(value, str) else json.dumps(value)
            for name, value in {**self.shown, **self.secrets}.items()
        }

    @property
    def hidden(self) -> tuple[str, ...]:
        """What no output may have in it. A program may print a text of several lines one by one."""
        lines = (line for secret in self.secrets.values() for line in secret.splitlines() if len(line) >= SHORTEST)
        return tuple({*self.secrets.values(), *lines})


def seal(workspace: str, payload: Payload, before: Payload, declared: Iterable[Parameter], vault: Vault) -> Payload:
    """The payload with each secret that it gives sealed. The mask, and a value that is the same as `before`, stand for
    what was sealed then. Raises Invalid."""
    asked = pipeline_payload.read(payload)
    former = before.get("parameters") if before.get("pipeline") == asked.pipeline else None
    values = dict(asked.parameters)
    for name in (parameter.name for parameter in declared if parameter.secret and parameter.name in values):
        earlier = former.get(name) if isinstance(former, dict) else None
        values[name] = _sealed(values[name], earlier, Place(workspace, asked.pipeline, name), vault)
    return {**payload, "parameters": values} if values else payload


def opened(workspace: str, pipeline: str, resolved: Resolved, vault: Vault) -> Opened:
    """Raises Invalid `schedule.validation.secret_unreadable`."""
    tokens = ((name, token_of(value)) for name, value in resolved.items())
    secrets = {name: _open(token, Place(workspace, pipeline, name), vault) for name, token in tokens if token}
    return Opened({name: masked(value) for name, value in resolved.items()}, secrets)


def _sealed(value: JsonValue, earlier: JsonValue, place: Place, vault: Vault) -> JsonValue:
    field = f"payload.parameters.{place.parameter}"
    if value is None:
        return None
    if not isinstance(value, str):
        said = f"The secret '{place.parameter}' is given as text, in quotes."
        raise Invalid("schedule.validation.parameters_invalid", said, field=field)
    if value == MASK:
        if token_of(earlier) is None:
            raise Invalid(
                "schedule.validation.secret_unknown",
                f"The mask stands for the value that '{place.parameter}' had before, and it had none.",
                field=field,
                hint="Give the value itself.",
            )
        return earlier
    check_secret(place.parameter, value)
    if not vault.has_key:
        raise Invalid(
            "schedule.validation.secret_key_missing",
            f"This server has no key to seal the secret '{place.parameter}' with.",
            field=field,
            hint="Set ALMANAC_SECRET_KEY_FILE for the API and for the workers.",
        )
    return earlier if _holds(earlier, value, place, vault) else sealed(vault.seal(value, place))


def _holds(earlier: JsonValue, value: str, place: Place, vault: Vault) -> bool:
    token = token_of(earlier)
    try:
        return token is not None and vault.open(token, place) == value
    except Unopened:
        return False


def _open(token: str, place: Place, vault: Vault) -> str:
    try:
        return vault.open(token, place)
    except Unopened as why:
        raise Invalid(
            "schedule.validation.secret_unreadable",
            f"The secret '{place.parameter}' can't be opened: {why}.",
            field=f"payload.parameters.{place.parameter}",
            hint="Give its value anew, or give the server the key that it was sealed with.",
        ) from None
