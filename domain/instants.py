"""Occurrences as bare Unix seconds: walked forwards and backwards, and counted without walking."""

from __future__ import annotations

from collections.abc import Iterator

from domain.matching import Matcher
from domain.tzif import DAY
from domain.wall_clock import Jump, Span, Stretch
from domain.zones import Zone


def instants(matching: Matcher, zone: Zone, start: int, end: int) -> Iterator[int]:
    """The occurrences from `start` to `end`, both included, as Unix seconds."""
    for piece in zone.pieces_from(start):
        if piece.start > end:
            return
        if isinstance(piece, Jump):
            if any(matching.count(*span) for span in piece.spans):
                yield piece.start
            continue
        for day, first, stop in matching.slices(*_clipped(piece, start, end)):
            midnight = day * DAY - piece.offset
            for second in matching.seconds[first:stop]:
                yield midnight + second


def instants_back(matching: Matcher, zone: Zone, start: int, end: int) -> Iterator[int]:
    """The occurrences from `end` back to `start`, both included, as Unix seconds."""
    for piece in zone.pieces_before(end):
        if piece.stop <= start:
            return
        if isinstance(piece, Jump):
            if any(matching.count(*span) for span in piece.spans):
                yield piece.start
            continue
        for reading in matching.readings_back(*_clipped(piece, start, end)):
            yield reading - piece.offset


def count_instants(matching: Matcher, zone: Zone, start: int, end: int) -> int:
    """How many occurrences there are from `start` to `end`, both included."""
    total = 0
    for piece in zone.pieces_from(start):
        if piece.start > end:
            break
        if isinstance(piece, Jump):
            total += any(matching.count(*span) for span in piece.spans)
        else:
            total += matching.count(*_clipped(piece, start, end))
    return total


def _clipped(piece: Stretch, start: int, end: int) -> Span:
    """The readings of the piece that are instants from `start` to `end`, both included."""
    return max(piece.low, start + piece.offset), min(piece.high, end + 1 + piece.offset)
