"""Cuts a zone's wall clock into pieces in which local time runs evenly, each reading standing in exactly one piece.

This is where the rule for odd local times lives, once, for every zone:

    ordinary               the one instant it names
    inside a gap           the first instant after the gap: the change itself
    inside an overlap      its first pass only

A piece is a stretch of local readings that became real for the first time, or the readings a change jumped over
together with the reading it landed on, all of which are the one instant of the change. Walking the pieces in order
walks the instants in order, so the code that matches patterns needs no case for daylight saving.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from domain.tzif import DAY, EPOCH_ORDINAL, Changes

Kind = Literal["ordinary", "gap", "overlap"]
Span = tuple[int, int]

# Two readings of one zone are never further apart than this: no offset is beyond 26 hours either way.
_REACH = 3 * DAY

FIRST_READING = (3 - EPOCH_ORDINAL) * DAY
"""Local readings start on 3 January of year 1: a margin, so that every reading has a UTC `datetime`."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Local readings `[low, high)` that become the instants `[start, stop)`: instant = reading - offset."""

    start: int
    stop: int
    low: int
    high: int
    offset: int
    kind: Literal["ordinary", "overlap"]


@dataclass(frozen=True, slots=True)
class Jump:
    """Local readings that all become the one instant `start`: those jumped over, and the one landed on.

    Readings below `landing` were never on the clock; `landing` itself is of kind `landing_kind`.
    """

    start: int
    stop: int
    spans: tuple[Span, ...]
    landing: int
    landing_kind: Literal["ordinary", "overlap"]

    def kind_of(self, reading: int) -> Kind:
        return "gap" if reading < self.landing else self.landing_kind


Piece = Stretch | Jump


@dataclass(frozen=True, slots=True)
class _Regime:
    """The time `[start, stop)` under one UTC offset."""

    start: int
    stop: int
    offset: int

    @property
    def readings(self) -> Span:
        return self.start + self.offset, self.stop + self.offset


def cut(changes: Changes, last_reading: int) -> tuple[Piece, ...]:
    """The pieces of one zone, in order of their instants, up to the local reading `last_reading` (exclusive)."""
    regimes = _regimes(changes, last_reading)
    pieces: list[Piece] = []
    jumped: list[Span] = []
    for index, regime in enumerate(regimes):
        near = _near(regimes, index)
        earlier = [other.readings for other in near if other.start < regime.start]
        later = [other.readings for other in near if other.start > regime.start]
        stretches = _stretches(regime, _minus([regime.readings], earlier), later)
        if index:
            step = (regimes[index - 1].readings[1], regime.readings[0])
            missing = _minus([step], earlier + later + jumped)
            jumped = [*jumped[-4:], *missing]
            if missing:
                pieces.append(_jump(regime, missing, stretches))
        pieces += stretches
    return tuple(pieces)


def _regimes(changes: Changes, last_reading: int) -> list[_Regime]:
    starts = [FIRST_READING - changes.before, *(instant for instant, _ in changes.changes)]
    offsets = [changes.before, *(offset for _, offset in changes.changes)]
    stops = [*starts[1:], last_reading - offsets[-1]]
    return [_Regime(*row) for row in zip(starts, stops, offsets, strict=True) if row[0] < row[1]]


def _near(regimes: list[_Regime], index: int) -> list[_Regime]:
    """The regimes whose readings can meet those of regime `index`, itself included."""
    low = high = index
    while low > 0 and regimes[low - 1].stop > regimes[index].start - _REACH:
        low -= 1
    while high + 1 < len(regimes) and regimes[high + 1].start < regimes[index].stop + _REACH:
        high += 1
    return regimes[low : high + 1]


def _minus(spans: list[Span], taken: list[Span]) -> list[Span]:
    """What is left of `spans` (in order) when the `taken` ones are cut out."""
    for low, high in taken:
        spans = [part for start, stop in spans for part in ((start, min(stop, low)), (max(start, high), stop))]
        spans = [span for span in spans if span[0] < span[1]]
    return [span for span in spans if span[0] < span[1]]


def _stretches(regime: _Regime, fresh: list[Span], later: list[Span]) -> list[Stretch]:
    """The readings that are new in this regime; those that come again later are the first pass of an overlap."""
    once = _minus(fresh, later)
    twice = _minus(fresh, once)
    offset = regime.offset
    return [
        Stretch(low - offset, high - offset, low, high, offset, "overlap" if (low, high) in twice else "ordinary")
        for low, high in sorted(once + twice)
    ]


def _jump(regime: _Regime, missing: list[Span], stretches: list[Stretch]) -> Jump:
    """The jump at the start of `regime`; the reading landed on moves into it from the first of `stretches`."""
    landing = regime.readings[0]
    spans = tuple(missing)
    kind: Literal["ordinary", "overlap"] = "ordinary"
    if stretches and stretches[0].low == landing:
        first = stretches.pop(0)
        kind = first.kind
        spans = (*spans, (landing, landing + 1))
        stretches.insert(0, replace(first, start=first.start + 1, low=landing + 1))
    return Jump(regime.start, regime.start + 1, spans, landing, kind)
