"""Makes trades.csv: one invented trading day, always the same for the same seed.

Run by hand: `python3 make_trades.py > trades.csv`. Prices walk at random, and most trades happen near the open and
the close, as on a real day.
"""

from __future__ import annotations

import csv
import random
import sys
from datetime import datetime, timedelta, timezone

SEED = 20260306
TRADES = 4000
OPEN = datetime(2026, 3, 6, 9, 30, tzinfo=timezone(timedelta(hours=-5)))
SESSION_SECONDS = 6.5 * 3600
SYMBOLS = {"ALDR": 142.50, "BRCH": 38.20, "CEDR": 87.75, "FIRR": 12.40, "MAPL": 256.10, "WLLW": 61.05}
SIZES = (1, 5, 10, 25, 50, 100, 100, 100, 200, 300, 500)


def main() -> None:
    chance = random.Random(SEED)
    prices = dict(SYMBOLS)
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["time", "symbol", "price", "size"])
    # A U-shape: the beta distribution with both parameters below one.
    for moment in sorted(chance.betavariate(0.6, 0.6) for _ in range(TRADES)):
        symbol = chance.choice(list(SYMBOLS))
        prices[symbol] = max(0.01, prices[symbol] * (1 + chance.gauss(0, 0.0008)))
        time = OPEN + timedelta(milliseconds=round(moment * SESSION_SECONDS * 1000))
        rows.writerow([time.isoformat(timespec="milliseconds"), symbol, f"{prices[symbol]:.2f}", chance.choice(SIZES)])


if __name__ == "__main__":
    main()
