"""The function against a slow evaluator that watches the clock, around clock changes of every kind of zone.

The usual run looks at a sample with fixed seeds, and at every zone once. `ALMANAC_ORACLE=full` looks at all changes of
all zones from 1990 to 2037, which takes many minutes.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from domain.cron import parse
from domain.errors import Invalid
from domain.occurrences import iterate
from domain.wall_clock import Kind
from domain.zones import load
from tests.domain import oracle
from tests.domain.pattern_text import random_pattern
from tests.domain.zone_ids import DISTINCT

FULL = os.environ.get("ALMANAC_ORACLE") == "full"
FIRST_YEAR, LAST_YEAR = 1990, 2037
ODD = [  # zones whose changes are unlike the usual hour in the small hours
    "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "America/Nuuk", "America/Santiago", "America/St_Johns",
    "Antarctica/Casey", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza", "Asia/Pyongyang", "Asia/Tehran",
    "Atlantic/Azores", "Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia", "Pacific/Chatham", "Pacific/Easter",
    "Pacific/Kiritimati", "Pacific/Kwajalein",
]  # fmt: skip


def _compare(expr: str, zone: str, ticks: list[oracle.Tick], after: datetime, until: datetime) -> None:
    expected = [due for due in oracle.due(expr, ticks) if after < due.at <= until]
    found = []
    for occurrence in iterate(parse(expr), load(zone), after):
        if occurrence.at > until:
            break
        found.append((occurrence.at, occurrence.nominal, occurrence.kind))
    assert found == [(due.at, due.nominal, _kind(due)) for due in expected], (expr, zone, after)


def _kind(due: oracle.Due) -> Kind:
    return "gap" if due.skipped else "overlap" if due.repeated else "ordinary"


def _check_change(zone: str, change: datetime, random: Random, patterns: int) -> None:
    """Patterns asked from before the change, from close to it, and from amid the time it repeats or skips."""
    ticks = oracle.watch(zone, change - timedelta(hours=54), change + timedelta(hours=30))
    for _ in range(patterns):
        expr = _matching_pattern(random)
        minutes = random.choice([-1500, -61, -1, 0, 1, 30, 59, 60, 90])
        seconds = random.choice([0, 0, 1, 59])
        after = change + timedelta(minutes=minutes, seconds=seconds, microseconds=random.choice([0, 0, 1, 999_999]))
        _compare(expr, zone, ticks, after, change + timedelta(hours=26))


def _matching_pattern(random: Random) -> str:
    while True:
        expr = random_pattern(random)
        try:
            parse(expr)
        except Invalid:
            continue
        return expr


def _sampled(zone: str, random: Random) -> list[datetime]:
    changes = oracle.changes(zone, FIRST_YEAR, LAST_YEAR)
    return list(changes) if FULL else random.sample(changes, min(len(changes), 10))


@pytest.mark.parametrize("zone", DISTINCT if FULL else ODD)
def test_occurrences_around_clock_changes_are_what_a_watched_clock_says(zone: str) -> None:
    random = Random(f"changes of {zone}")
    for change in _sampled(zone, random):
        _check_change(zone, change, random, patterns=5)


@pytest.mark.parametrize("share", range(4))
def test_every_zone_agrees_with_a_watched_clock_on_some_change(share: int) -> None:
    for zone in DISTINCT[share::4]:
        random = Random(f"one change of {zone}")
        year = random.choice([1991, 1996, 2006, 2011, 2016, 2026, 2036])
        changes = oracle.changes(zone, year, year)
        change = random.choice(changes) if changes else datetime(year, 3, 1, tzinfo=UTC)
        _check_change(zone, change, random, patterns=1)


@pytest.mark.parametrize("year", [2038, 2099, 2100, 2199])
def test_the_rule_that_ends_a_zone_file_is_followed_for_ever(year: int) -> None:
    for zone in ("America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "America/Santiago", "America/Nuuk"):
        random = Random(f"{zone} in {year}")
        for change in oracle.changes(zone, year, year):
            _check_change(zone, change, random, patterns=5)


def test_a_whole_year_with_four_changes_agrees_with_a_watched_clock() -> None:
    zone, begin, end = "Africa/Casablanca", datetime(2018, 1, 1, tzinfo=UTC), datetime(2018, 11, 1, tzinfo=UTC)
    ticks = oracle.watch(zone, begin - timedelta(days=3), end + timedelta(days=3))
    for expr in ("*/15 * * * *", "30 2 * * *", "0 0 29 3,5 0", "59 23 31 * *"):
        _compare(expr, zone, ticks, begin, end)
