"""What a pattern will do in a zone, shown before anything is saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.change_warnings import change_warnings
from domain.cron import parse
from domain.explain import in_words
from domain.occurrences import Occurrence, upcoming
from domain.wall_clock import Kind
from domain.zones import Zone, load, tzdata_version

YEAR = timedelta(days=365)
_RULES: dict[Kind, str] = {"ordinary": "ordinary", "gap": "gap", "overlap": "overlap: first pass"}


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One coming occurrence: its instant (UTC), the wall clock then (`2027-03-14T03:00-04:00`), that clock's UTC offset
    (`-04:00`), the local times it stands for (`2027-03-14T02:30`), and what the rule did: `ordinary`, `gap` or
    `overlap: first pass`.
    """

    at: datetime
    local: str
    offset: str
    nominal: tuple[str, ...]
    rule: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The next occurrences of a pattern, the pattern in words, and what the coming year's clock changes do to it."""

    expression: str
    zone: str
    words: str
    tzdata_version: str
    rows: tuple[PreviewRow, ...]
    warnings: tuple[str, ...]


def preview(expr: str, zone_id: str, now: datetime, count: int) -> Preview:
    """The next `count` occurrences strictly after `now` (aware). Raises Invalid where pattern or zone is refused."""
    pattern, zone = parse(expr), load(zone_id)
    found = upcoming(pattern, zone, now, limit=count)
    return Preview(
        expression=pattern.text,
        zone=zone.id,
        words=in_words(pattern),
        tzdata_version=tzdata_version(),
        rows=tuple(_row(zone, occurrence) for occurrence in found),
        warnings=tuple(change_warnings(pattern, zone, now, now + YEAR)),
    )


def _row(zone: Zone, occurrence: Occurrence) -> PreviewRow:
    offset = zone.local(occurrence.at).isoformat()[19:]
    nominal = tuple(time.isoformat(timespec="minutes") for time in occurrence.nominal)
    return PreviewRow(occurrence.at, zone.shown(occurrence.at), offset, nominal, _RULES[occurrence.kind])
