"""The cutting of a wall clock into pieces, for all zones and for clocks that no zone has had yet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from domain.calm_days import Calm, calm_runs
from domain.tzif import DAY, Changes
from domain.wall_clock import Jump, Piece, Stretch, cut
from domain.zones import LAST_DAY, load
from tests.domain.strange_clocks import CLOCKS, watched
from tests.domain.zone_ids import ZONES

END = 60 * DAY


def _reading(pieces: tuple[Piece, ...], reading: int) -> tuple[int, str]:
    """The instant of a reading and its kind; exactly one piece must have it."""
    found = []
    for piece in pieces:
        if isinstance(piece, Jump):
            if any(low <= reading < high for low, high in piece.spans):
                found.append((piece.start, piece.kind_of(reading)))
        elif piece.low <= reading < piece.high:
            found.append((reading - piece.offset, piece.kind))
    assert len(found) == 1, (reading, found)
    return found[0]


@pytest.mark.parametrize("name", CLOCKS)
def test_every_reading_has_one_instant_and_it_is_what_a_watched_clock_says(name: str) -> None:
    changes = CLOCKS[name]
    pieces = cut(changes, END)
    for reading in range(7 * DAY, 14 * DAY, 1800):
        assert _reading(pieces, reading) == watched(changes, reading), reading / 3600


@pytest.mark.parametrize("name", CLOCKS)
def test_calm_days_keep_clear_of_anything_odd(name: str) -> None:
    pieces = cut(CLOCKS[name], END)
    runs = calm_runs(pieces)
    for run in runs:
        for reading in (run.first * DAY, (run.last + 1) * DAY - 1):
            assert _reading(pieces, reading) == (reading - run.offset, "ordinary")
    for piece in pieces:
        for low, high in piece.spans if isinstance(piece, Jump) else [(piece.low, piece.high)]:
            _check_order(piece, (low, high), runs)
    assert runs[-1].last == END // DAY - 1


def _check_order(piece: Piece, span: tuple[int, int], runs: tuple[Calm, ...]) -> None:
    """Readings before a calm run are instants before it, and those after it after it."""
    for run in runs:
        if span[1] <= run.first * DAY:
            assert piece.stop <= run.start
        elif span[0] >= (run.last + 1) * DAY:
            assert piece.start >= run.stop


def test_a_change_by_seconds_is_cut_to_the_second() -> None:
    # Local time goes from 23:59:32 to midnight, and the midnight after is amid a repeated half minute.
    changes = Changes(1172, ((10 * DAY - 1200, 1200), (11 * DAY - 1190, 1180)))
    pieces = cut(changes, END)
    assert _reading(pieces, 10 * DAY - 1) == (10 * DAY - 1200, "gap")
    assert _reading(pieces, 10 * DAY) == (10 * DAY - 1200, "ordinary")
    assert _reading(pieces, 11 * DAY) == (11 * DAY - 1200, "overlap")
    assert _reading(pieces, 11 * DAY + 10) == (11 * DAY - 1170, "ordinary")


def test_the_pieces_of_every_zone_are_in_order_and_whole() -> None:
    for zone_id in ZONES[::4]:
        zone = load(zone_id)
        spans: list[tuple[int, int]] = []
        for earlier, later in pairwise(zone.pieces):
            assert earlier.stop <= later.start, zone_id
        for piece in zone.pieces:
            spans += piece.spans if isinstance(piece, Jump) else [(piece.low, piece.high)]
        spans.sort()
        assert all(earlier[1] == later[0] for earlier, later in pairwise(spans)), zone_id
        assert spans[-1][1] == (LAST_DAY + 1) * DAY


def test_most_days_of_most_zones_are_calm() -> None:
    zone = load("America/New_York")
    year = datetime(2027, 1, 1, tzinfo=UTC)
    calm = {day for run in zone.calm for day in range(run.first, run.last + 1)}
    first = (year - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(days=1)
    assert [day - first for day in range(first, first + 365) if day not in calm] == [72, 310]


def test_stretches_of_a_piece_are_even() -> None:
    for piece in load("Africa/Casablanca").pieces:
        if isinstance(piece, Stretch):
            assert piece.high - piece.low == piece.stop - piece.start
            assert piece.low - piece.offset == piece.start
