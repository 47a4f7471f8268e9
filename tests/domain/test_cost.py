"""Costs are added up exactly, and what is none is told beside them."""

from __future__ import annotations

import json

import pytest

from domain import cost


def line(**fields: object) -> str:
    return json.dumps({"amount": "1", "currency": "USD"} | fields)


def test_amounts_are_added_exactly_each_currency_by_itself() -> None:
    told = cost.read("\n".join([line(amount="0.1"), line(amount="0.20"), line(amount="3", currency="EUR"), ""]))
    assert told is not None
    assert told.totals == {"EUR": "3", "USD": "0.30"}
    assert told.problems == ()


def test_a_number_is_kept_as_it_is_written() -> None:
    told = cost.read('{"amount": 0.100000000000000001, "currency": "USD", "details": {"tokens": 12, "rate": 0.5}}')
    assert told is not None
    assert told.items[0].amount == "0.100000000000000001"
    assert told.items[0].details == {"tokens": 12, "rate": 0.5}


@pytest.mark.parametrize("text", ["", "\n  \n"])
def test_nothing_is_no_cost(text: str) -> None:
    assert cost.read(text) is None


@pytest.mark.parametrize(
    "wrong",
    [
        "12 USD",
        '"12"',
        line(amount="-1"),
        line(amount="1e3"),
        '{"amount": 1e999999999, "currency": "USD"}',
        '{"amount": NaN, "currency": "USD"}',
        line(amount=True),
        line(amount=None),
        line(amount="9" * 19),
        line(currency="usd"),
        line(currency="DOLLARS"),
        line(what="x" * 201),
        line(price="1"),
        '{"amount": "1", "currency": "USD", "what": "\\ud800"}',
        '{"amount": "1", "currency": "USD", "details": {"\\ud800": 1}}',
        '{"currency": "USD"}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_none_is_told_and_the_others_count(wrong: str) -> None:
    told = cost.read(f"{line()}\n{wrong}\n{line()}")
    assert told is not None
    assert told.totals == {"USD": "2"}
    (problem,) = told.problems
    assert problem.startswith("Line 2 is no cost: ")
    json.dumps(told.model_dump(mode="json"), ensure_ascii=False).encode()


def test_very_many_lines_are_not_read_for_ever() -> None:
    told = cost.read("\n".join([line()] * (cost.MOST_ITEMS + 2)))
    assert told is not None
    assert len(told.items) == cost.MOST_ITEMS
    assert len(told.problems) == 1


def test_totals_are_added_to_totals() -> None:
    many = [{"USD": "999999999999999999.000000000000000001"}] * 3
    assert cost.added(many) == {"USD": "2999999999999999997.000000000000000003"}
    assert cost.added([{"USD": "0.1"}, {"USD": "0.2", "EUR": "1"}]) == {"EUR": "1", "USD": "0.3"}
    assert cost.added([]) == {}
