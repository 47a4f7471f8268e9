"""Occurrences, counts and spans on clocks stranger than any zone's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.cron import parse
from domain.occurrences import iterate, survey, upcoming
from domain.tzif import DAY
from domain.zones import build
from tests.domain import oracle
from tests.domain.strange_clocks import CLOCKS, watched

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PATTERNS = ["*/30 * * * *", "0 * * * *", "30 */5 * * *", "0 0 * * *", "30 23 * * *", "0 12 12 1 *"]


def _expected(name: str, expr: str) -> list[tuple[int, list[int]]]:
    """Instants with their readings from day 7 to day 14, reading by reading."""
    matches = oracle.matching(expr)
    found: dict[int, list[int]] = {}
    for reading in range(5 * DAY, 16 * DAY, 1800):
        if matches((EPOCH + timedelta(seconds=reading)).replace(tzinfo=None)):
            found.setdefault(watched(CLOCKS[name], reading)[0], []).append(reading)
    return [(instant, found[instant]) for instant in sorted(found) if 7 * DAY < instant <= 14 * DAY]


def _seconds(moment: datetime) -> int:
    return (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)


@pytest.mark.parametrize("expr", PATTERNS)
@pytest.mark.parametrize("name", CLOCKS)
def test_occurrences_are_in_order_and_what_a_watched_clock_says(name: str, expr: str) -> None:
    begin, end = EPOCH + timedelta(days=7), EPOCH + timedelta(days=14)
    found = upcoming(parse(expr), build(name, CLOCKS[name]), begin, limit=10_000, until=end)
    seen = [(_seconds(occurrence.at), [_seconds(time) for time in occurrence.nominal]) for occurrence in found]
    assert seen == _expected(name, expr)


@pytest.mark.parametrize("name", CLOCKS)
def test_wall_times_become_the_same_instants(name: str) -> None:
    zone = build(name, CLOCKS[name])
    for reading in range(7 * DAY, 14 * DAY, 1800):
        wall = (EPOCH + timedelta(seconds=reading)).replace(tzinfo=None)
        assert _seconds(zone.instant(wall)) == watched(CLOCKS[name], reading)[0], wall


@pytest.mark.parametrize("expr", PATTERNS[:3])
@pytest.mark.parametrize("name", CLOCKS)
def test_asking_and_counting_from_any_half_hour_to_any_is_consistent(name: str, expr: str) -> None:
    pattern, zone = parse(expr), build(name, CLOCKS[name])
    whole = upcoming(pattern, zone, EPOCH + timedelta(days=9), limit=10_000, until=EPOCH + timedelta(days=13))
    moments = [EPOCH + timedelta(days=9, minutes=30 * n) for n in range(4 * 48)]
    for after in moments[::2]:
        later = [occurrence for occurrence in whole if occurrence.at > after]
        assert next(iterate(pattern, zone, after)) == later[0] if later else True
        for until in moments[::5]:
            between = [occurrence for occurrence in later if occurrence.at <= until]
            counted = survey(pattern, zone, after, until)
            if not between:
                assert counted is None
                continue
            assert counted is not None
            previous = between[-2] if len(between) > 1 else None
            assert (counted.count, counted.first, counted.previous, counted.last) == (
                len(between),
                between[0],
                previous,
                between[-1],
            )
