"""The one function that says when a pattern is due in a zone, and everything counted or measured on it.

The pattern is matched on the zone's wall clock. A local time inside a gap becomes the change itself, one that happens
twice its first pass only, and several local times on one instant are one occurrence. An answer is always strictly after
the instant asked about. Dates reach to the end of 2200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile

from domain.cron import Pattern
from domain.errors import Invalid
from domain.instants import count_instants, instants, instants_back
from domain.matching import Matcher, matcher
from domain.tzif import DAY
from domain.wall_clock import Jump, Kind
from domain.zones import LAST_DAY, Zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a wall clock reading has no offset
_SECOND = timedelta(seconds=1)
_ORDINARY: Kind = "ordinary"


@dataclass(frozen=True, slots=True, init=False)
class Occurrence:
    """One instant a schedule is due.

    `at` is UTC. `nominal` are the local times it stands for (naive, ascending). `kind` is `gap` where at least one of
    them was never on the clock, `overlap` where it is the first pass of a time that happens twice, else `ordinary`.
    """

    at: datetime
    nominal: tuple[datetime, ...]
    kind: Kind

    def __init__(self, at: datetime, nominal: tuple[datetime, ...], kind: Kind) -> None:
        # Long series build millions of these, and the generated __init__ of a frozen class takes twice as long.
        _set_at(self, at)
        _set_nominal(self, nominal)
        _set_kind(self, kind)

    @property
    def local_dates(self) -> tuple[date, ...]:
        """The local dates it belongs to: those of its nominal times, even where a gap moved the instant to the next."""
        return tuple(dict.fromkeys(nominal.date() for nominal in self.nominal))


_set_at, _set_nominal, _set_kind = (Occurrence.__dict__[name].__set__ for name in ("at", "nominal", "kind"))


@dataclass(frozen=True, slots=True)
class Survey:
    """How many occurrences there are in a span of time, the first, the last and the one before the last.

    `previous` is None where there is only one.
    """

    count: int
    first: Occurrence
    last: Occurrence
    previous: Occurrence | None


def iterate(pattern: Pattern, zone: Zone, after: datetime) -> Iterator[Occurrence]:
    """The occurrences strictly after an aware instant, lazily and in order. Raises Invalid where `after` is naive."""
    return _iterate(matcher(pattern), zone, _seconds(after) + 1)


def upcoming(
    pattern: Pattern, zone: Zone, after: datetime, *, limit: int, until: datetime | None = None
) -> list[Occurrence]:
    """The first `limit` occurrences in `(after, until]`, or all known ones after it where `until` is None."""
    found = iterate(pattern, zone, after)
    if until is not None:
        _require_instant(until)
        found = takewhile(lambda occurrence: occurrence.at <= until, found)
    return list(islice(found, max(limit, 0)))


def survey(pattern: Pattern, zone: Zone, after: datetime, until: datetime) -> Survey | None:
    """Counts the occurrences in `(after, until]` without walking them; None where there are none.

    The time it takes depends on the years and zone changes between the two, not on the number of occurrences.
    """
    matching, start, end = matcher(pattern), _seconds(after) + 1, _seconds(until)
    count = count_instants(matching, zone, start, end)
    if not count:
        return None
    first = next(_iterate(matching, zone, start))
    tail = list(islice(instants_back(matching, zone, start, end), 2))
    last = next(_iterate(matching, zone, tail[0]))
    previous = next(_iterate(matching, zone, tail[1])) if count > 1 else None
    return Survey(count, first, last, previous)


def closest_pair(pattern: Pattern, zone: Zone, after: datetime, days: int = 14) -> tuple[Occurrence, Occurrence] | None:
    """The two consecutive occurrences with the least time between them in `(after, after + days]`, the first such pair.

    None where fewer than two occurrences fall in that span.
    """
    matching, start = matcher(pattern), _seconds(after) + 1
    found = instants(matching, zone, start, start - 1 + days * DAY)
    earlier = next(found, None)
    best: tuple[int, int] | None = None
    for later in found:
        assert earlier is not None
        if best is None or later - earlier < best[1] - best[0]:
            best = (earlier, later)
        earlier = later
    if best is None:
        return None
    return next(_iterate(matching, zone, best[0])), next(_iterate(matching, zone, best[1]))


def check_interval(pattern: Pattern, zone: Zone, now: datetime, min_interval_seconds: int) -> None:
    """Refuses a pattern with two consecutive occurrences closer than this anywhere in the 14 days after `now`.

    Raises Invalid `schedule.validation.interval_too_short`, which names the closest pair with its local times.
    """
    pair = closest_pair(pattern, zone, now)
    if pair is None:
        return
    seconds = round((pair[1].at - pair[0].at).total_seconds())
    if seconds >= min_interval_seconds:
        return
    earlier, later = (zone.shown(occurrence.at) for occurrence in pair)
    raise Invalid(
        "schedule.validation.interval_too_short",
        f"`{pattern.text}` is due at {earlier} and again {seconds} s later, at {later} ({zone.id}); "
        f"occurrences must be at least {min_interval_seconds} s apart.",
        field="cron",
        hint="Choose a pattern that is due less often.",
        seconds=seconds,
        min_interval_seconds=min_interval_seconds,
        closest=[pair[0].at.isoformat(), pair[1].at.isoformat()],
    )


def _seconds(moment: datetime) -> int:
    """Whole Unix seconds, rounded down. Occurrences fall on whole seconds, so nothing lies between."""
    _require_instant(moment)
    return (moment - _EPOCH) // _SECOND


def _require_instant(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise Invalid(
            "schedule.validation.instant_naive",
            f"{moment.isoformat()} has no UTC offset, so it is no instant.",
            hint="Add the offset, such as `Z`.",
        )


def _iterate(matching: Matcher, zone: Zone, start: int) -> Iterator[Occurrence]:
    """The occurrences at or after `start` (Unix seconds).

    Calm days, nearly all, need no look at the clock's pieces; only what lies between calm runs is walked piece by
    piece, and only where a matching day falls there.
    """
    calm = zone.calm_at(start)
    first = max(calm.first, (start + calm.offset) // DAY + 1)
    yield from _walk(matching, zone, start, first * DAY - calm.offset)
    epoch, deltas, kind = _EPOCH - timedelta(seconds=calm.offset), matching.deltas, _ORDINARY
    last = calm.last
    for day in matching.days(first, LAST_DAY):
        if day > last:
            walked = calm.stop
            calm = zone.calm_from(day)
            first, last = calm.first, calm.last
            if day < first:
                yield from _walk(matching, zone, walked, calm.start)
            epoch = _EPOCH - timedelta(seconds=calm.offset)
        if day < first:
            continue
        midnight = timedelta(day)
        at, wall = epoch + midnight, _WALL_EPOCH + midnight
        for delta in deltas:
            yield Occurrence(at + delta, (wall + delta,), kind)


def _walk(matching: Matcher, zone: Zone, start: int, end: int) -> Iterator[Occurrence]:
    """The occurrences in `[start, end)` (Unix seconds), piece by piece."""
    for piece in zone.pieces_from(start):
        if piece.start >= end:
            return
        if isinstance(piece, Jump):
            nominal = _nominal(matching, piece)
            if nominal:
                reading = (nominal[0] - _WALL_EPOCH) // _SECOND
                yield Occurrence(_EPOCH + timedelta(seconds=piece.start), nominal, piece.kind_of(reading))
            continue
        epoch, kind = _EPOCH - timedelta(seconds=piece.offset), piece.kind
        low, high = max(piece.low, start + piece.offset), min(piece.high, end + piece.offset)
        for day, first, stop in matching.slices(low, high):
            midnight = timedelta(day)
            at, wall = epoch + midnight, _WALL_EPOCH + midnight
            for delta in matching.deltas[first:stop]:
                yield Occurrence(at + delta, (wall + delta,), kind)


def _nominal(matching: Matcher, jump: Jump) -> tuple[datetime, ...]:
    return tuple(
        _WALL_EPOCH + timedelta(day) + delta
        for low, high in jump.spans
        for day, first, stop in matching.slices(low, high)
        for delta in matching.deltas[first:stop]
    )
