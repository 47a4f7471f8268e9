"""Times as people read them: local with the offset, UTC beside it, and how long ago or until then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from domain import zones
from domain.errors import Invalid

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def local(at: datetime, zone_id: str) -> str:
    """`Sun 2027-03-14 03:00 -04:00`, or UTC where the zone is not known here."""
    try:
        wall = zones.load(zone_id).local(at)
    except Invalid:
        return utc(at)
    pattern = "%a %Y-%m-%d %H:%M" if wall.second == 0 else "%a %Y-%m-%d %H:%M:%S"
    return f"{wall:{pattern}} {wall.isoformat()[-6:]}"


def utc(at: datetime) -> str:
    """`2027-03-14 07:00Z`, with seconds where there are any."""
    at = at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M}Z" if at.second == 0 else f"{at:%Y-%m-%d %H:%M:%S}Z"


def relative(at: datetime, now: datetime) -> str:
    """`3 min ago`, `in 2 h`, `now`."""
    words = span(abs(at - now))
    if words == "0 s":
        return "now"
    return f"in {words}" if at > now else f"{words} ago"


def span(length: timedelta) -> str:
    """A length of time in its largest whole unit, rounded down: `42 s`, `3 min`, `2 h`, `5 d`."""
    seconds = int(length.total_seconds())
    unit, size = next(((unit, size) for unit, size in UNITS if seconds >= size), UNITS[-1])
    return f"{seconds // size} {unit}"
