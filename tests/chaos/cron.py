"""When the few patterns of the chaos run are due, by trying every minute. Written for the checker alone; the zones have
no change of their clocks while it runs."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = 60


@cache
def values(field: str) -> frozenset[int] | None:
    """The values of a field; None where it is not restricted."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*" and not step:
            return None
        first, _, last = ("0", "-", "59") if span == "*" else span.partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(found)


def due(cron: str, zone: str, at: float) -> bool:
    """Whether the pattern, of which only the first two fields may be restricted, is due at this full minute."""
    minute, hour, *rest = cron.split()
    assert rest == ["*", "*", "*"], cron
    clock = datetime.fromtimestamp(at, ZoneInfo(zone))
    return all(
        allowed is None or now in allowed
        for allowed, now in ((values(minute), clock.minute), (values(hour), clock.hour))
    )


def between(cron: str, zone: str, after: float, until: float) -> list[float]:
    """The occurrences in `(after, until]`."""
    first = (int(after // MINUTE) + 1) * MINUTE
    return [float(at) for at in range(first, int(until) + 1, MINUTE) if due(cron, zone, at)]


def local_date(zone: str, at: float) -> date:
    return datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone)).date()
