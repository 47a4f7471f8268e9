"""The binder: what each type takes and makes of it, and what bindings give a run."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from domain.errors import Invalid
from domain.parameters import Parameter, ParameterType, Reference, check_declared, resolve

T = ParameterType
TODAY: JsonValue = {"source": "keyword", "name": "TODAY"}
YESTERDAY: JsonValue = {"source": "keyword", "name": "YESTERDAY"}


def reference(instant: str, zone: str = "America/New_York") -> Reference:
    return Reference(at=datetime.fromisoformat(instant), zone=zone)


def one(kind: ParameterType, value: JsonValue) -> JsonValue:
    return resolve((Parameter(name="p", type=kind),), {"p": value}, {}, None)["p"]


def refusal(
    parameters: tuple[Parameter, ...], values: dict[str, JsonValue], bindings: dict[str, JsonValue] | None = None
) -> tuple[str, str | None]:
    with pytest.raises(Invalid) as caught:
        resolve(parameters, values, bindings or {}, None)
    return caught.value.code.removeprefix("schedule.validation."), caught.value.field


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (T.STRING, "TODAY", "TODAY"),
        (T.STRING, "", ""),
        (T.INTEGER, -3, -3),
        (T.INTEGER, 10**50, 10**50),
        (T.DECIMAL, 12.5, "12.5"),
        (T.DECIMAL, "12.50", "12.50"),
        (T.DECIMAL, 3, "3"),
        (T.DECIMAL, 1e-7, "0.0000001"),
        (T.DECIMAL, "0.1000000000000000000001", "0.1000000000000000000001"),
        (T.BOOLEAN, False, False),
        (T.DATE, "2028-02-29", "2028-02-29"),
        (T.TIMESTAMP, "2027-03-14T03:00:00-04:00", "2027-03-14T07:00:00Z"),
        (T.TIMESTAMP, "2027-03-14 07:00Z", "2027-03-14T07:00:00Z"),
    ],
)
def test_a_value_of_its_type(kind: ParameterType, value: JsonValue, expected: JsonValue) -> None:
    assert one(kind, value) == expected
    assert type(one(kind, value)) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (T.STRING, 7),
        (T.STRING, ["a"]),
        (T.STRING, "a\0b"),
        (T.STRING, "x" * 32_769),
        (T.STRING, "\ud800"),
        (T.INTEGER, "7"),
        (T.INTEGER, 7.0),
        (T.INTEGER, True),
        (T.INTEGER, 10**100),
        (T.DECIMAL, True),
        (T.DECIMAL, "NaN"),
        (T.DECIMAL, float("inf")),
        (T.DECIMAL, "1e999"),
        (T.DECIMAL, "1_000"),
        (T.DECIMAL, "١٢"),
        (T.BOOLEAN, 1),
        (T.BOOLEAN, "true"),
        (T.DATE, "2027-02-29"),
        (T.DATE, "20270314"),
        (T.DATE, "2027-3-14"),
        (T.DATE, "TODAY"),
        (T.DATE, TODAY),
        (T.TIMESTAMP, "2027-03-14T07:00:00"),
        (T.TIMESTAMP, "2027-03-14"),
        (T.TIMESTAMP, "0001-01-01T00:00:00+14:00"),
        (T.TIMESTAMP, 0),
    ],
)
def test_a_value_of_another_type_is_refused_without_repeating_it(kind: ParameterType, value: JsonValue) -> None:
    parameters = (Parameter(name="p", type=kind),)
    with pytest.raises(Invalid) as caught:
        resolve(parameters, {"p": value}, {}, None)
    assert caught.value.code == "schedule.validation.parameters_invalid"
    assert caught.value.field == "payload.parameters.p"
    bound: dict[str, JsonValue] = {"p": {"source": "literal", "value": value}}
    code, field = refusal(parameters, {}, bound)
    assert code == ("parameters_invalid" if kind is T.DATE else "binding_invalid")
    assert field in ("payload.parameter_bindings.p.value", "payload.parameter_bindings.p")


def test_defaults_requirements_and_absences() -> None:
    parameters = (
        Parameter(name="limit", type=T.INTEGER, default=5),
        Parameter(name="region", type=T.STRING, required=True),
        Parameter(name="note", type=T.STRING),
        Parameter(name="rate", type=T.DECIMAL, required=True, default=0.5),
    )
    assert resolve(parameters, {"region": "eu"}, {}, None) == {
        "limit": 5,
        "region": "eu",
        "note": None,
        "rate": "0.5",
    }
    assert refusal(parameters, {}) == ("parameters_invalid", "payload.parameters.region")
    assert refusal(parameters, {"region": None}) == ("parameters_invalid", "payload.parameters.region")
    assert refusal(parameters, {"region": "eu", "regoin": "eu"}) == ("parameters_invalid", "payload.parameters.regoin")


@pytest.mark.parametrize(
    ("instant", "zone", "today", "yesterday"),
    [
        ("2026-11-01T12:00:00+00:00", "America/New_York", "2026-11-01", "2026-10-31"),
        # The day of 25 hours, in its first and in its last hour: one day before it, not 24 hours.
        ("2026-11-01T04:30:00+00:00", "America/New_York", "2026-11-01", "2026-10-31"),
        ("2026-11-02T04:30:00+00:00", "America/New_York", "2026-11-01", "2026-10-31"),
        ("2026-03-09T03:30:00+00:00", "America/New_York", "2026-03-08", "2026-03-07"),
        # One instant, two dates.
        ("2026-12-01T10:30:00+00:00", "Pacific/Kiritimati", "2026-12-02", "2026-12-01"),
        ("2026-12-01T10:30:00+00:00", "Pacific/Pago_Pago", "2026-11-30", "2026-11-29"),
        # Samoa had no 30 December 2011: yesterday is a day of the calendar all the same.
        ("2011-12-30T12:00:00+00:00", "Pacific/Apia", "2011-12-31", "2011-12-30"),
    ],
)
def test_keywords_are_calendar_days_of_the_reference_time(instant: str, zone: str, today: str, yesterday: str) -> None:
    parameters = (Parameter(name="day", type=T.DATE, required=True), Parameter(name="before", type=T.DATE))
    bindings = {"day": TODAY, "before": YESTERDAY}
    resolved = resolve(parameters, {}, bindings, reference(instant, zone))
    assert resolved == {"day": today, "before": yesterday}


def test_a_binding_is_checked_without_a_reference_and_decided_with_one() -> None:
    parameters = (Parameter(name="day", type=T.DATE, required=True),)
    assert resolve(parameters, {}, {"day": TODAY}, None) == {"day": None}
    literal: JsonValue = {"source": "literal", "value": "2027-01-01"}
    assert resolve(parameters, {}, {"day": literal}, None) == {"day": "2027-01-01"}


@pytest.mark.parametrize(
    ("name", "binding"),
    [
        ("gone", TODAY),
        ("text", TODAY),
        ("text", {"source": "literal", "value": "x"}),
        ("day", "TODAY"),
        ("day", {"source": "keyword", "name": "today"}),
        ("day", {"source": "keyword", "name": "TOMORROW"}),
        ("day", {"source": "keyword", "name": "TODAY", "offset": 1}),
        ("day", {"source": "keyword"}),
        ("day", {"source": "literal"}),
        ("day", {"name": "TODAY"}),
        ("day", None),
    ],
)
def test_a_binding_that_does_not_fit_is_refused(name: str, binding: JsonValue) -> None:
    parameters = (Parameter(name="day", type=T.DATE), Parameter(name="text", type=T.STRING))
    assert refusal(parameters, {}, {name: binding}) == ("binding_invalid", f"payload.parameter_bindings.{name}")


def test_one_name_in_both_maps_is_refused() -> None:
    parameters = (Parameter(name="day", type=T.DATE),)
    conflict = ("binding_conflict", "payload.parameter_bindings.day")
    assert refusal(parameters, {"day": "2027-01-01"}, {"day": TODAY}) == conflict
    assert refusal((), {"day": "2027-01-01"}, {"day": TODAY}) == conflict


@pytest.mark.parametrize(
    ("parameters", "code", "field"),
    [
        (("p", "P"), "parameter_duplicate", "parameters.1.name"),
        (("p", "p"), "parameter_duplicate", "parameters.1.name"),
    ],
)
def test_names_that_a_step_could_not_tell_apart_are_refused(parameters: tuple[str, ...], code: str, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_declared(tuple(Parameter(name=name, type=T.STRING) for name in parameters))
    assert (caught.value.code, caught.value.field) == (f"pipeline.validation.{code}", field)


def test_a_default_of_another_type_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        check_declared((Parameter(name="p", type=T.DATE, default="soon"),))
    assert (caught.value.code, caught.value.field) == ("pipeline.validation.parameter_default", "parameters.0.default")


ZONES = ("America/New_York", "Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu", "UTC")
SENSIBLE: dict[ParameterType, st.SearchStrategy[JsonValue]] = {
    T.STRING: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50),
    T.INTEGER: st.integers(-(10**60), 10**60),
    T.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False, places=6, max_value=10**20, min_value=-(10**20)).map(
        str
    ),
    T.BOOLEAN: st.booleans(),
    T.DATE: st.dates().map(date.isoformat),
    T.TIMESTAMP: st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5.5))]))
    .filter(lambda at: 1 < at.year < 9999)
    .map(datetime.isoformat),
}
WHATEVER = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates().map(date.isoformat),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=5,
)


@given(st.data(), st.sampled_from(ParameterType))
def test_binding_again_what_was_bound_changes_nothing(data: st.DataObject, kind: ParameterType) -> None:
    value = data.draw(SENSIBLE[kind])
    bound = one(kind, value)
    assert one(kind, bound) == bound
    assert json.loads(json.dumps(bound)) == bound
    if kind is T.DECIMAL:
        assert Decimal(str(bound)) == Decimal(str(value))


@given(st.sampled_from(ParameterType), WHATEVER)
def test_whatever_is_given_is_bound_or_refused(kind: ParameterType, value: JsonValue) -> None:
    """Nothing else is raised."""
    with suppress(Invalid):
        bound = one(kind, value)
        assert bound is None or isinstance(bound, str | int | bool)


@given(st.integers(0, 4_000_000_000), st.sampled_from(ZONES))
def test_yesterday_is_always_one_day_of_the_calendar_before_today(seconds: int, zone: str) -> None:
    parameters = (Parameter(name="day", type=T.DATE), Parameter(name="before", type=T.DATE))
    at = Reference(at=datetime.fromtimestamp(seconds, UTC), zone=zone)
    resolved = resolve(parameters, {}, {"day": TODAY, "before": YESTERDAY}, at)
    today, before = (date.fromisoformat(str(resolved[name])) for name in ("day", "before"))
    assert today - before == timedelta(days=1)
