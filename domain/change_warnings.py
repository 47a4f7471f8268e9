"""Says plainly what clock changes do to a pattern: times that run at the change, and hours that stay silent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from domain.cron import Pattern
from domain.matching import Matcher, matcher
from domain.occurrences import iterate
from domain.tzif import DAY
from domain.zones import Change, Zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOON = timedelta(hours=1)


def change_warnings(pattern: Pattern, zone: Zone, after: datetime, until: datetime) -> Iterator[str]:
    """One sentence or two for each change of the zone's clock in `(after, until]` (aware) that touches the pattern.

    A second pass that is still going on at `after` counts too.
    """
    matching = matcher(pattern)
    for change in zone.changes_between(after - timedelta(days=1), until):
        low, high = sorted((change.before, change.after))
        readings = _matching_readings(matching, change.instant + low, change.instant + high)
        if not readings:
            continue
        if change.after > change.before:
            if change.at > after:
                yield _forward(pattern, zone, change, readings)
        elif change.at + timedelta(seconds=high - low) > after:
            yield _back(change, readings)


def _forward(pattern: Pattern, zone: Zone, change: Change, readings: list[int]) -> str:
    said = (
        f"{_said(change, 'forward')} {_times(readings)} "
        f"{'does not exist and runs' if len(readings) == 1 else 'do not exist and run once,'} "
        f"at the change itself, {zone.shown(change.at)}."
    )
    following = next(iterate(pattern, zone, change.at), None)
    if following is None or following.at - change.at >= _SOON:
        return said
    minutes = (following.at - change.at) // timedelta(minutes=1)
    return f"{said} The next run follows {minutes} min later, at {zone.local(following.at):%H:%M}."


def _back(change: Change, readings: list[int]) -> str:
    begin, end = change.at, change.at + timedelta(seconds=change.before - change.after)
    return (
        f"{_said(change, 'back')} {_times(readings)} "
        f"{'happens' if len(readings) == 1 else 'happen'} twice and {'runs' if len(readings) == 1 else 'run'} "
        f"the first time only; the repeat, {begin:%Y-%m-%dT%H:%MZ} to {end:%Y-%m-%dT%H:%MZ}, is silent."
    )


def _said(change: Change, direction: str) -> str:
    old = _clock(change.instant + change.before)
    new = _clock(change.instant + change.after)
    shown = new[11:] if new[:10] == old[:10] else new
    return f"The clock goes {direction} from {old} to {shown}:"


def _times(readings: list[int]) -> str:
    first, last = _clock(readings[0]), _clock(readings[-1])
    if len(readings) == 1:
        return first[11:]
    same_day = first[:10] == last[:10]
    return f"the {len(readings)} times from {first[11:] if same_day else first} to {last[11:] if same_day else last}"


def _clock(reading: int) -> str:
    return f"{_EPOCH + timedelta(seconds=reading):%Y-%m-%d %H:%M}"


def _matching_readings(matching: Matcher, low: int, high: int) -> list[int]:
    return [
        day * DAY + second for day, first, stop in matching.slices(low, high) for second in matching.seconds[first:stop]
    ]
