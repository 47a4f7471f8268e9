"""What a step says it has cost: one JSON object a line, so that several programs can add to one file.

    {"amount": "0.12", "currency": "USD", "what": "tokens", "details": {"model": "m", "input": 1200}}

Amounts are added up exactly, each currency by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Annotated

from pydantic import AfterValidator, JsonValue, StringConstraints

from domain import json_lines
from domain.values import Value

DIGITS = 60
"""More than any sum of amounts has."""

AMOUNT = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def _check_amount(amount: str) -> str:
    if not AMOUNT.fullmatch(amount):
        raise ValueError("an amount is a decimal number that is not negative")
    return amount


class CostItem(Value):
    amount: Annotated[str, AfterValidator(_check_amount)]
    """A decimal number in text, which keeps its digits."""
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    """By ISO 4217, such as USD."""
    what: Annotated[str, StringConstraints(max_length=200)] | None = None
    details: dict[str, JsonValue] | None = None


class Cost(Value):
    """The body of a `cost` document."""

    items: tuple[CostItem, ...]
    totals: dict[str, str]
    """By currency."""
    problems: tuple[str, ...]
    """Which lines could not be read, and why."""


def read(text: str) -> Cost | None:
    """What the lines say; None where there is none."""
    items, problems = json_lines.read(text, "cost", _item)
    if not items and not problems:
        return None
    totals = added({item.currency: item.amount} for item in items)
    return Cost(items=items, totals=totals, problems=problems)


def added(totals: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The sums by currency."""
    sums: dict[str, Decimal] = {}
    with localcontext(prec=DIGITS):
        for one in totals:
            for currency, amount in one.items():
                sums[currency] = sums.get(currency, Decimal(0)) + Decimal(amount)
    return {currency: format(sums[currency], "f") for currency in sorted(sums)}


def _item(line: str) -> CostItem:
    found = json_lines.object_of(line)
    # An amount that is a number is taken as it is written, digit by digit.
    written = json.loads(line, parse_float=str, parse_int=str)
    return CostItem.model_validate({**found, "amount": written.get("amount")})
