"""Time zones by IANA id, read from the pinned `tzdata` package and from nowhere else.

Python's own `zoneinfo` prefers the machine's zone files, which go stale. Almanac reads the package's files itself, and
switches that search path off so that any other code in the process reads the same data.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from importlib import resources

import tzdata  # type: ignore[import-untyped]  # a package of data files, without types

from domain import tzif
from domain.calm_days import Calm, calm_runs
from domain.errors import Invalid
from domain.wall_clock import Jump, Piece, cut
from domain.zone_names import check_name

LAST_YEAR = 2200
"""Occurrences are known up to the end of this local year."""

LAST_DAY = date(LAST_YEAR, 12, 31).toordinal() - tzif.EPOCH_ORDINAL
"""The same as a Unix day number."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a wall clock reading has no offset
_SECOND = timedelta(seconds=1)

zoneinfo.reset_tzpath(())


def tzdata_version() -> str:
    """The IANA release of the zone data in use, such as `2026f`."""
    return str(tzdata.IANA_VERSION)


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a zone's UTC offset: its instant in Unix seconds, and the offsets before it and from then on."""

    instant: int
    before: int
    after: int

    @property
    def at(self) -> datetime:
        return _EPOCH + timedelta(seconds=self.instant)


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """One zone's wall clock: its id, its changes of offset, and its `pieces` in order (see `wall_clock`)."""

    id: str
    pieces: tuple[Piece, ...] = field(repr=False)
    calm: tuple[Calm, ...] = field(repr=False)
    _stops: tuple[int, ...] = field(repr=False)
    _calm_stops: tuple[int, ...] = field(repr=False)
    _calm_lasts: tuple[int, ...] = field(repr=False)
    _instants: tuple[int, ...] = field(repr=False)
    _offsets: tuple[int, ...] = field(repr=False)

    def pieces_from(self, instant: int) -> Iterator[Piece]:
        """The pieces that have an instant at or after `instant` (Unix seconds), in order."""
        for index in range(bisect_right(self._stops, instant), len(self.pieces)):
            yield self.pieces[index]

    def pieces_before(self, instant: int) -> Iterator[Piece]:
        """The pieces that have an instant at or before `instant` (Unix seconds), the latest first."""
        last = min(bisect_right(self._stops, instant), len(self.pieces) - 1)
        for index in range(last, -1, -1):
            if self.pieces[index].start <= instant:
                yield self.pieces[index]

    def calm_at(self, instant: int) -> Calm:
        """The first calm run that ends after `instant` (Unix seconds)."""
        return self.calm[min(bisect_right(self._calm_stops, instant), len(self.calm) - 1)]

    def calm_from(self, day: int) -> Calm:
        """The first calm run that has days at or after `day` (a Unix day number up to `LAST_DAY`)."""
        return self.calm[min(bisect_left(self._calm_lasts, day), len(self.calm) - 1)]

    def offset_at(self, instant: int) -> int:
        """The UTC offset in seconds at `instant` (Unix seconds)."""
        return self._offsets[bisect_right(self._instants, instant)]

    def local(self, at: datetime) -> datetime:
        """The wall clock at an aware instant, as a `datetime` with that moment's fixed offset."""
        offset = self.offset_at((at - _EPOCH) // _SECOND)
        return at.astimezone(timezone(timedelta(seconds=offset)))

    def shown(self, at: datetime) -> str:
        """The wall clock at an aware instant as people are shown it: `2027-03-14T03:00-04:00`."""
        local = self.local(at)
        return local.isoformat(timespec="seconds" if local.second else "minutes")

    def instant(self, wall: datetime) -> datetime:
        """The instant (UTC) a naive wall clock reading up to 2200 becomes: first pass of an overlap, end of a gap."""
        reading = (wall - _WALL_EPOCH) // _SECOND
        # No offset is beyond 26 hours: the piece of the reading is near this instant.
        for piece in self.pieces_from(reading - 2 * tzif.DAY):
            if isinstance(piece, Jump):
                if any(low <= reading < high for low, high in piece.spans):
                    return _EPOCH + timedelta(seconds=piece.start)
            elif piece.low <= reading < piece.high:
                return _EPOCH + timedelta(seconds=reading - piece.offset)
        raise Invalid("schedule.validation.wall_time", f"{wall.isoformat()} is not in the years 1 to {LAST_YEAR}.")

    def changes_between(self, after: datetime, until: datetime) -> Iterator[Change]:
        """The changes of offset in `(after, until]` (aware instants), in order."""
        first = bisect_right(self._instants, (after - _EPOCH) // _SECOND)
        stop = bisect_right(self._instants, (until - _EPOCH) // _SECOND)
        for index in range(first, stop):
            yield Change(self._instants[index], self._offsets[index], self._offsets[index + 1])


def load(zone_id: str) -> Zone:
    """The zone of an IANA region id (`Area/Place`, legacy links included) or `UTC`.

    Raises Invalid (`schedule.validation.zone_*`, field `timezone`) for fixed offsets, abbreviations, ids without a
    slash, wrong case and unknown ids. There is no fallback.
    """
    return _load(check_name(zone_id))


@cache
def _load(zone_id: str) -> Zone:
    data = resources.files("tzdata").joinpath("zoneinfo", *zone_id.split("/")).read_bytes()
    return build(zone_id, tzif.read(data, LAST_YEAR))


def build(zone_id: str, changes: tzif.Changes) -> Zone:
    """The zone whose clock changes at these instants and at no others."""
    pieces = cut(changes, (LAST_DAY + 1) * tzif.DAY)
    # The empty run after the end lets every day and instant have a next one.
    calm = (*calm_runs(pieces), Calm(LAST_DAY + 1, LAST_DAY, changes.last))
    return Zone(
        zone_id,
        pieces,
        calm,
        tuple(piece.stop for piece in pieces),
        tuple(run.stop for run in calm),
        tuple(run.last for run in calm),
        tuple(instant for instant, _ in changes.changes),
        (changes.before, *(offset for _, offset in changes.changes)),
    )
