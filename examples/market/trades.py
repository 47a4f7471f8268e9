"""Reads a day of trades; a line that makes no sense ends the program with its number."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple


class Trade(NamedTuple):
    time: datetime
    symbol: str
    price: Decimal
    size: int


def read(file: Path) -> Iterator[Trade]:
    """In the order of the file."""
    with file.open(newline="") as rows:
        for number, row in enumerate(csv.DictReader(rows), start=2):
            try:
                trade = Trade(
                    datetime.fromisoformat(row["time"]), row["symbol"], Decimal(row["price"]), int(row["size"])
                )
            except (KeyError, TypeError, ValueError, InvalidOperation) as error:
                raise SystemExit(f"{file.name}:{number}: not a trade: {error!r}") from error
            if trade.price <= 0 or trade.size <= 0:
                raise SystemExit(f"{file.name}:{number}: price and size have to be positive")
            yield trade
