"""The cutting of a wall clock into pieces, on clocks that no zone has had yet, and the zone file reader."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from domain.calm_days import Calm, calm_runs
from domain.tzif import DAY, Changes, read
from domain.wall_clock import Jump, Piece, Stretch, cut
from domain.zones import LAST_DAY, load
from tests.domain.zone_ids import ZONES

HOUR = 3600
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


def _watched(changes: Changes, reading: int) -> tuple[int, str]:
    """The same, by looking at the clock every half hour."""
    offsets = [(-(10**12), changes.before), *changes.changes]

    def shown(instant: int) -> int:
        return instant + [offset for start, offset in offsets if start <= instant][-1]

    instants = range(reading - 3 * DAY, reading + 3 * DAY, 1800)
    exact = [instant for instant in instants if shown(instant) == reading]
    if exact:
        return exact[0], "overlap" if len(exact) > 1 else "ordinary"
    return next(later for now, later in pairwise(instants) if shown(now) < reading < shown(later)), "gap"


CLOCKS = {
    "no change": (),
    "forward": ((10 * DAY, HOUR),),
    "back": ((10 * DAY, -HOUR),),
    "a day forward": ((10 * DAY, 24 * HOUR),),
    "a day back": ((10 * DAY, -24 * HOUR),),
    "forward and back in an hour": ((10 * DAY, 2 * HOUR), (10 * DAY + HOUR, 0)),
    "forward, then back into the gap": ((10 * DAY, 3 * HOUR), (10 * DAY + HOUR, 2 * HOUR)),
    "back, then forward over the repeated hours": ((10 * DAY, -3 * HOUR), (10 * DAY + HOUR, HOUR)),
    "the same hour three times": ((10 * DAY, -HOUR), (10 * DAY + HOUR, -2 * HOUR)),
    "the same gap twice": ((10 * DAY, 2 * HOUR), (10 * DAY + 1800, -HOUR), (10 * DAY + 2 * HOUR, 2 * HOUR)),
    "a half-hour gap amid a day back": ((10 * DAY, -24 * HOUR), (11 * DAY, -24 * HOUR + 1800)),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_every_reading_has_one_instant_and_it_is_what_a_watched_clock_says(name: str) -> None:
    changes = Changes(0, CLOCKS[name])
    pieces = cut(changes, END)
    for reading in range(7 * DAY, 14 * DAY, 1800):
        assert _reading(pieces, reading) == _watched(changes, reading), reading / HOUR


@pytest.mark.parametrize("name", CLOCKS)
def test_calm_days_keep_clear_of_anything_odd(name: str) -> None:
    pieces = cut(Changes(0, CLOCKS[name]), END)
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


@pytest.mark.parametrize("data", [b"", b"TZif", b"nothing of the kind" * 10, b"TZif" + b"\0" * 40])
def test_what_is_no_zone_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"TZif|ends early"):
        read(data, 2200)


def test_stretches_of_a_piece_are_even() -> None:
    for piece in load("Africa/Casablanca").pieces:
        if isinstance(piece, Stretch):
            assert piece.high - piece.low == piece.stop - piece.start
            assert piece.low - piece.offset == piece.start
