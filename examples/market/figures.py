"""Makes figures.json: open, high, low, close, volume and volume-weighted average price of every symbol."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import trades

CENT = Decimal("0.01")


def main(file: Path) -> None:
    by_symbol: dict[str, list[trades.Trade]] = defaultdict(list)
    for trade in trades.read(file):
        by_symbol[trade.symbol].append(trade)
    figures = {symbol: _figures(by_symbol[symbol]) for symbol in sorted(by_symbol)}
    last = max(each[-1].time for each in by_symbol.values())
    day = {"trading_day": last.date().isoformat(), "run_id": os.environ["ALMANAC_RUN_ID"], "symbols": figures}
    Path("figures.json").write_text(json.dumps(day, indent=2) + "\n")
    for symbol, row in figures.items():
        print(
            f"{symbol:<6}{row['open']:>9}{row['high']:>9}{row['low']:>9}{row['close']:>9}{row['volume']:>9}{row['vwap']:>9}"
        )


def _figures(day: list[trades.Trade]) -> dict[str, Any]:
    prices = [trade.price for trade in day]
    volume = sum(trade.size for trade in day)
    traded = sum((trade.price * trade.size for trade in day), Decimal(0))
    return {
        "open": str(prices[0]),
        "high": str(max(prices)),
        "low": str(min(prices)),
        "close": str(prices[-1]),
        "volume": volume,
        "vwap": str((traded / volume).quantize(CENT, ROUND_HALF_EVEN)),
        "trades": len(day),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
