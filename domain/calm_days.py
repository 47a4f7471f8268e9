"""Finds the runs of whole days on which a wall clock does nothing odd: nearly all days, which need no rule at all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from domain.tzif import DAY
from domain.wall_clock import FIRST_READING, Jump, Piece, Span, Stretch


@dataclass(frozen=True, slots=True)
class Calm:
    """Whole local days `first` to `last` (Unix day numbers) under one offset, with no change and no second pass.

    Readings of earlier days are all before `start`, those of later days all at or after `stop` (Unix seconds).
    """

    first: int
    last: int
    offset: int

    @property
    def start(self) -> int:
        return self.first * DAY - self.offset

    @property
    def stop(self) -> int:
        return (self.last + 1) * DAY - self.offset


def calm_runs(pieces: tuple[Piece, ...]) -> tuple[Calm, ...]:
    """The runs of whole days on which local time has nothing special, in order."""
    spans = [(piece.low, piece.high) if isinstance(piece, Stretch) else _hull(piece) for piece in pieces]
    earlier = list(accumulate((high for _, high in spans), max, initial=FIRST_READING))
    later = list(accumulate((low for low, _ in reversed(spans)), min, initial=spans[-1][1]))[::-1]
    runs = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, Stretch) and piece.kind == "ordinary":
            first = -(-max(piece.low, earlier[index]) // DAY)
            last = min(piece.high, later[index + 1]) // DAY - 1
            if first <= last:
                runs.append(Calm(first, last, piece.offset))
    return tuple(runs)


def _hull(jump: Jump) -> Span:
    return min(low for low, _ in jump.spans), max(high for _, high in jump.spans)
