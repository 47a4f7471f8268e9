"""Refuses a file of trades that is empty, out of order or of more than one day, before any figure is made of it."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import trades


def main(file: Path) -> None:
    found = list(trades.read(file))
    if not found:
        raise SystemExit(f"{file.name} holds no trades.")
    for earlier, later in pairwise(found):
        if later.time < earlier.time:
            raise SystemExit(f"{file.name}: {later.time} comes after {earlier.time}")
    days = sorted({trade.time.date().isoformat() for trade in found})
    if len(days) > 1:
        raise SystemExit(f"{file.name} holds more than one day: {', '.join(days)}")
    print(f"{len(found)} trades of {days[0]}, {found[0].time:%H:%M:%S} to {found[-1].time:%H:%M:%S}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
