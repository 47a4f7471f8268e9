"""Clocks that no zone has had yet, and what one sees who watches them."""

from __future__ import annotations

from itertools import pairwise

from domain.tzif import DAY, Changes
from domain.wall_clock import Kind

HOUR = 3600

_CHANGES: dict[str, tuple[tuple[int, int], ...]] = {
    "no change": (),
    "forward": ((10 * DAY, HOUR),),
    "back": ((10 * DAY, -HOUR),),
    "a day forward": ((10 * DAY, 24 * HOUR),),
    "a day back": ((10 * DAY, -24 * HOUR),),
    "forward and back in an hour": ((10 * DAY, 2 * HOUR), (10 * DAY + HOUR, 0)),
    "forward, then back into the gap": ((10 * DAY, 3 * HOUR), (10 * DAY + HOUR, HOUR)),
    "a day forward, back into the gap, and forward over what has been": (
        (10 * DAY, 23 * HOUR),
        (11 * DAY + 2 * HOUR, -14 * HOUR),
        (11 * DAY + 13 * HOUR, 12 * HOUR),
    ),
    "forward, back for a whole day in the gap, and forward over what has been": (
        (9 * DAY + 23 * HOUR, 26 * HOUR),
        (10 * DAY, -HOUR),
        (11 * DAY + 2 * HOUR, 0),
    ),
    "back, then forward over the repeated hours": ((10 * DAY, -3 * HOUR), (10 * DAY + HOUR, HOUR)),
    "back, then forward as the repeat ends": ((10 * DAY, -3 * HOUR), (10 * DAY + 3 * HOUR, 0)),
    "the same hour three times": ((10 * DAY, -HOUR), (10 * DAY + HOUR, -2 * HOUR)),
    "the same gap twice": ((10 * DAY, 2 * HOUR), (10 * DAY + 1800, -HOUR), (10 * DAY + 2 * HOUR, 2 * HOUR)),
    "a half-hour gap amid a day back": ((10 * DAY, -24 * HOUR), (11 * DAY, -24 * HOUR + 1800)),
}
CLOCKS = {name: Changes(0, changes) for name, changes in _CHANGES.items()}


def watched(changes: Changes, reading: int) -> tuple[int, Kind]:
    """The instant of a reading and its kind, by looking at the clock every half hour."""
    offsets = [(-(10**12), changes.before), *changes.changes]

    def shown(instant: int) -> int:
        return instant + [offset for start, offset in offsets if start <= instant][-1]

    instants = range(reading - 3 * DAY, reading + 3 * DAY, 1800)
    exact = [instant for instant in instants if shown(instant) == reading]
    if exact:
        return exact[0], "overlap" if len(exact) > 1 else "ordinary"
    return next(later for now, later in pairwise(instants) if shown(now) < reading < shown(later)), "gap"
