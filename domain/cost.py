"""What a step says it has cost: one JSON object a line, so that several programs can add to one file.

    {"amount": "0.12", "currency": "USD", "what": "tokens", "details": {"model": "m", "input": 1200}}

Amounts are added up exactly, each currency by itself. A line that is none is told beside the others: neither may a
slip in the accounts fail a step that has done its work, nor may an amount be lost unseen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Annotated

from pydantic import AfterValidator, JsonValue, StringConstraints, ValidationError

from domain.values import Value

MOST_ITEMS = 1_000
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
    items: list[CostItem] = []
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if len(items) + len(problems) == MOST_ITEMS:
            problems.append(f"There are more than {MOST_ITEMS} lines; the others are not counted.")
            break
        try:
            items.append(_item(line))
        except (ValueError, RecursionError) as error:
            problems.append(f"Line {number} is no cost: {_why(error)}.")
    if not items and not problems:
        return None
    totals = added({item.currency: item.amount} for item in items)
    return Cost(items=tuple(items), totals=totals, problems=tuple(problems))


def added(totals: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The sums by currency."""
    sums: dict[str, Decimal] = {}
    with localcontext(prec=DIGITS):
        for one in totals:
            for currency, amount in one.items():
                sums[currency] = sums.get(currency, Decimal(0)) + Decimal(amount)
    return {currency: format(sums[currency], "f") for currency in sorted(sums)}


def _item(line: str) -> CostItem:
    found = json.loads(line, parse_constant=_no_constant)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    # An amount that is a number is taken as it is written, digit by digit.
    written = json.loads(line, parse_float=str, parse_int=str)
    item = CostItem.model_validate({**found, "amount": written.get("amount")})
    # Half a surrogate pair can't be written into any document.
    json.dumps(found, ensure_ascii=False).encode()
    return item


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'it'}: {first['msg'].removeprefix('Value error, ')}"
    if isinstance(error, UnicodeError):
        return "it has half a surrogate pair"
    return "it is not JSON" if isinstance(error, json.JSONDecodeError | RecursionError) else str(error)
