"""Makes pulse.html and pulse.txt from the figures of the latest close that succeeded.

Which run that is, the folders say themselves: run_metadata.json has whose it is, how it ended and when. The number in a
folder's name says nothing about time, so no folder is chosen by it.
"""

from __future__ import annotations

import html
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;color:#222}
table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}.up{color:#17692f}.down{color:#a11d1d}"""


def main() -> None:
    closes = Path(os.environ["ALMANAC_RUN_FOLDER"]).parents[2] / "close" / "runs"
    folder = _latest(closes)
    day = json.loads((folder / "work" / "figures.json").read_text())
    rows = [(symbol, figures, _change(figures)) for symbol, figures in day["symbols"].items()]
    rows.sort(key=lambda row: row[2], reverse=True)
    Path("pulse.txt").write_text(_text(day, rows))
    Path("pulse.html").write_text(_page(day, rows))
    print(f"{day['trading_day']}: {len(rows)} symbols, from {folder.name} ({day['run_id']})")
    print(_text(day, rows))


def _latest(closes: Path) -> Path:
    succeeded = []
    for file in closes.glob("*/run_metadata.json"):
        metadata = json.loads(file.read_text())
        if metadata["status"] == "succeeded":
            succeeded.append((metadata["completed_at"], file.parent))
    if not succeeded:
        raise SystemExit("No close has succeeded yet: run market/close first.")
    return max(succeeded)[1]


def _change(figures: dict[str, Any]) -> Decimal:
    """From open to close, in percent."""
    first, last = Decimal(figures["open"]), Decimal(figures["close"])
    return (last - first) / first * 100


def _text(day: dict[str, Any], rows: list[tuple[str, dict[str, Any], Decimal]]) -> str:
    lines = [f"Market pulse, {day['trading_day']}", ""]
    lines += [f"{symbol:<6}{row['close']:>9}{change:>+8.2f} %{row['volume']:>9}" for symbol, row, change in rows]
    return "\n".join(lines) + "\n"


def _page(day: dict[str, Any], rows: list[tuple[str, dict[str, Any], Decimal]]) -> str:
    cells = "".join(
        f"<tr><td>{html.escape(symbol)}<td>{row['open']}<td>{row['high']}<td>{row['low']}<td>{row['close']}"
        f"<td class={'up' if change >= 0 else 'down'}>{change:+.2f} %<td>{row['vwap']}<td>{row['volume']:,}"
        for symbol, row, change in rows
    )
    heads = "".join(f"<th>{name}" for name in ("Symbol", "Open", "High", "Low", "Close", "Change", "VWAP", "Volume"))
    title = f"Market pulse, {day['trading_day']}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
        f"<h1>{title}</h1><table><tr>{heads}{cells}</table><p>Computed by run {html.escape(day['run_id'])}.\n"
    )


if __name__ == "__main__":
    main()
