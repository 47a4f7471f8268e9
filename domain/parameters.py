"""The one binder of parameters: used when a schedule is saved, when it is unblocked and when each run is prepared.

| type | given as | a step gets |
|---|---|---|
| STRING | text | the same |
| INTEGER | a whole number | the same |
| DECIMAL | a number, or one as text | its exact digits as text |
| BOOLEAN | true or false | the same |
| DATE | `2027-03-14` | the same |
| TIMESTAMP | an instant with its offset | the same instant in UTC, `2027-03-14T07:00:00Z` |

A binding computes a DATE for each run: TODAY and YESTERDAY are calendar days in the schedule's zone at the run's
frozen reference time, never 24 hours and never the actual start. Keywords stand only in an explicit binding; the text
"TODAY" given as a value is that text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated

from pydantic import JsonValue, StringConstraints

from domain import secrets, zones
from domain.errors import Invalid
from domain.values import Value

LONGEST_TEXT = 32_768
LONGEST_NUMBER = 100

KEYWORDS = {"TODAY": timedelta(0), "YESTERDAY": timedelta(days=1)}

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})"
)

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]


class ParameterType(StrEnum):
    STRING = "STRING"
    INTEGER = "INTEGER"
    DECIMAL = "DECIMAL"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"


class Parameter(Value):
    """A value that a pipeline asks for."""

    name: Name
    type: ParameterType
    required: bool = False
    """A run without a value for it is refused, unless it has a default."""
    default: JsonValue = None
    secret: bool = False
    """Its values are sealed when they are saved, and nobody but the steps reads them again. Only for STRING."""


class Reference(Value):
    """What bindings are computed on: a run's frozen reference time and its schedule's zone."""

    at: datetime
    zone: str


Given = Mapping[str, JsonValue]
Resolved = dict[str, JsonValue]


def check_declared(parameters: tuple[Parameter, ...]) -> None:
    """Refuses names that differ in case only, because a step sees them as environment variables, and defaults of
    another type."""
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        if parameter.name.upper() in seen:
            raise Invalid(
                "pipeline.validation.parameter_duplicate",
                f"The parameter '{parameter.name}' is declared twice; upper and lower case are the same here.",
                field=f"parameters.{index}.name",
            )
        seen.add(parameter.name.upper())
        if parameter.secret and (parameter.type is not ParameterType.STRING or parameter.default is not None):
            raise Invalid(
                "pipeline.validation.parameter_secret",
                f"The secret parameter '{parameter.name}' is a STRING without a default: a default could be read.",
                field=f"parameters.{index}.secret",
            )
        if parameter.default is not None:
            try:
                _value(parameter, parameter.default)
            except _Unfit as unfit:
                raise Invalid(
                    "pipeline.validation.parameter_default",
                    f"The default of '{parameter.name}' is no {parameter.type}: {unfit}.",
                    field=f"parameters.{index}.default",
                ) from None


def resolve(parameters: tuple[Parameter, ...], given: Given, bindings: Given, reference: Reference | None) -> Resolved:
    """The value of each declared parameter, None where it has none. Without a reference everything is checked, and
    what depends on one stays None. Raises Invalid `schedule.validation.binding_conflict`, `binding_invalid` or
    `parameters_invalid`."""
    declared = {parameter.name: parameter for parameter in parameters}
    values: Resolved = {}
    for name, binding in bindings.items():
        if name in given:
            raise Invalid(
                "schedule.validation.binding_conflict",
                f"The parameter '{name}' has both a value and a binding.",
                field=f"payload.parameter_bindings.{name}",
                hint="Keep one of the two.",
            )
        values[name] = _bound(declared.get(name), name, binding, reference)
    for name, value in given.items():
        if name not in declared:
            raise _refused(name, f"The pipeline has no parameter '{name}'.", _known(parameters))
        values[name] = _checked(declared[name], value, f"payload.parameters.{name}")
    for parameter in parameters:
        if parameter.name not in values:
            values[parameter.name] = _absent(parameter)
    return {parameter.name: values[parameter.name] for parameter in parameters}


def _bound(parameter: Parameter | None, name: str, binding: JsonValue, reference: Reference | None) -> JsonValue:
    if parameter is None:
        raise _binding_refused(name, f"The pipeline has no parameter '{name}' to bind.")
    if parameter.type is not ParameterType.DATE:
        raise _binding_refused(name, f"Only a DATE can be bound; '{name}' is a {parameter.type}.")
    value = bound(name, binding, reference)
    if isinstance(binding, dict) and binding["source"] == "literal":
        return _checked(parameter, value, f"payload.parameter_bindings.{name}.value")
    return value


def bound(name: str, binding: JsonValue, reference: Reference | None) -> JsonValue:
    """What a binding comes to, None where that depends on a reference and there is none. Raises Invalid
    `schedule.validation.binding_invalid` for what is no binding."""
    match binding:
        case {"source": "keyword", "name": str() as keyword, **rest} if not rest and keyword in KEYWORDS:
            return None if reference is None else _on(keyword, reference)
        case {"source": "literal", "value": value, **rest} if not rest:
            return value
        case _:
            raise _binding_refused(name, f"The binding of '{name}' is none that there is.")


def _on(keyword: str, reference: Reference) -> str:
    today = zones.load(reference.zone).local(reference.at).date()
    return (today - KEYWORDS[keyword]).isoformat()


def _checked(parameter: Parameter, value: JsonValue, field: str) -> JsonValue:
    if value is None:
        if parameter.required:
            raise _refused(parameter.name, f"The parameter '{parameter.name}' needs a value.", field=field)
        return None
    try:
        return _value(parameter, value)
    except _Unfit as unfit:
        message = f"The parameter '{parameter.name}' is a {parameter.type}: {unfit}."
        raise _refused(parameter.name, message, field=field) from None


def _absent(parameter: Parameter) -> JsonValue:
    if parameter.default is not None:
        return _value(parameter, parameter.default)
    if parameter.required:
        hint = "Give it in the payload's 'parameters', or bind it in 'parameter_bindings'."
        raise _refused(parameter.name, f"The parameter '{parameter.name}' needs a value.", hint)
    return None


class _Unfit(Exception):
    """The value is none of the type. Its text says what the type asks for, and never repeats the value."""


def check_secret(name: str, value: str) -> None:
    """Whether it can be sealed as the value of a secret parameter. Raises Invalid `parameters_invalid`."""
    field = f"payload.parameters.{name}"
    if len(value) < secrets.SHORTEST:
        said = f"The secret '{name}' has fewer than {secrets.SHORTEST} characters and couldn't be masked in output."
        raise _refused(name, said, field=field)
    try:
        _text(value)
    except _Unfit as unfit:
        raise _refused(name, f"The parameter '{name}' is a STRING: {unfit}.", field=field) from None


def _value(parameter: Parameter, value: JsonValue) -> JsonValue:
    if parameter.secret:
        if secrets.token_of(value) is None:
            raise _Unfit("it is secret, and its value was not sealed; save it again")
        return value
    match parameter.type, value:
        case ParameterType.STRING, str():
            return _text(value)
        case ParameterType.BOOLEAN, bool():
            return value
        case ((ParameterType.INTEGER | ParameterType.DECIMAL), bool()):
            raise _Unfit("true and false are no numbers")
        case ParameterType.INTEGER, int():
            if len(str(value)) > LONGEST_NUMBER:
                raise _Unfit(f"it may have {LONGEST_NUMBER} digits")
            return value
        case ParameterType.DECIMAL, int() | float() | str():
            return _decimal(value)
        case ParameterType.DATE, str():
            return _date(value)
        case ParameterType.TIMESTAMP, str():
            return _timestamp(value)
        case _:
            raise _Unfit(_ASKED[parameter.type])


_ASKED = {
    ParameterType.STRING: "it is given as text, in quotes",
    ParameterType.INTEGER: "it is given as a whole number, without quotes",
    ParameterType.DECIMAL: "it is given as a number such as 12.50",
    ParameterType.BOOLEAN: "it is given as true or false, without quotes",
    ParameterType.DATE: "it is given as a date such as 2027-03-14",
    ParameterType.TIMESTAMP: "it is given as an instant with its offset, such as 2027-03-14T07:00:00Z",
}


def _text(value: str) -> str:
    if len(value) > LONGEST_TEXT or "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise _Unfit(f"it may have {LONGEST_TEXT} characters, and none that a program can't be given")
    return value


def _decimal(value: float | str) -> str:
    text = value if isinstance(value, str) else repr(value)
    if len(text) > LONGEST_NUMBER or not _DECIMAL.fullmatch(text):
        raise _Unfit(_ASKED[ParameterType.DECIMAL])
    try:
        return format(Decimal(text), "f")
    except InvalidOperation:
        raise _Unfit(_ASKED[ParameterType.DECIMAL]) from None


def _date(value: str) -> str:
    try:
        if not _DATE.fullmatch(value):
            raise ValueError
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise _Unfit(_ASKED[ParameterType.DATE]) from None


def _timestamp(value: str) -> str:
    try:
        if not _TIMESTAMP.fullmatch(value):
            raise ValueError
        return datetime.fromisoformat(value).astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise _Unfit(_ASKED[ParameterType.TIMESTAMP]) from None


def _known(parameters: tuple[Parameter, ...]) -> str:
    names = ", ".join(parameter.name for parameter in parameters)
    return f"Its parameters: {names}." if names else "It has no parameters."


def _refused(name: str, message: str, hint: str | None = None, *, field: str | None = None) -> Invalid:
    return Invalid(
        "schedule.validation.parameters_invalid", message, field=field or f"payload.parameters.{name}", hint=hint
    )


def _binding_refused(name: str, message: str) -> Invalid:
    return Invalid(
        "schedule.validation.binding_invalid",
        message,
        field=f"payload.parameter_bindings.{name}",
        hint='A binding is {"source": "keyword", "name": "TODAY" or "YESTERDAY"} or {"source": "literal", "value": …}.',
    )
