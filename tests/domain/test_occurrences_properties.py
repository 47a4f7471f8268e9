"""What holds for every pattern in every zone, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from domain.cron import Pattern, parse
from domain.errors import Invalid
from domain.occurrences import Occurrence, iterate, survey, upcoming
from domain.zones import LAST_YEAR, load
from tests.domain import oracle
from tests.domain.pattern_text import patterns
from tests.domain.zone_ids import ZONES

zones = st.sampled_from(ZONES)
instants = st.datetimes(datetime(1900, 1, 1), datetime(2150, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  made aware


@st.composite
def near_changes(draw: st.DrawFn, zone: str) -> datetime:
    """An instant within a day of one of the zone's changes, to the second."""
    changes = [
        change.at for change in load(zone).changes_between(*(datetime(y, 1, 1, tzinfo=UTC) for y in (1850, 2150)))
    ]
    assume(changes)
    return draw(st.sampled_from(changes)) + timedelta(seconds=draw(st.integers(-90_000, 90_000)))


def _due(expr: str, zone: str, after: datetime, count: int) -> list[Occurrence]:
    return list(islice(iterate(_valid(expr), load(zone), after), count))


def _valid(expr: str) -> Pattern:
    try:
        return parse(expr)
    except Invalid:
        assume(False)
        raise


@settings(max_examples=300)
@given(patterns(), zones, st.data())
def test_occurrences_come_in_order_after_the_instant_and_stand_for_matching_times(
    expr: str, zone: str, data: st.DataObject
) -> None:
    after = data.draw(instants | near_changes(zone))
    found = _due(expr, zone, after, 50)
    matches = oracle.matching(_valid(expr).text)
    assert all(occurrence.at > after for occurrence in found)
    assert all(earlier.at < later.at for earlier, later in pairwise(found))
    for occurrence in found:
        assert occurrence.nominal
        assert all(matches(time) for time in occurrence.nominal)
        assert list(occurrence.nominal) == sorted(set(occurrence.nominal))
        clock = load(zone).local(occurrence.at).replace(tzinfo=None)
        assert occurrence.kind == "gap" or occurrence.nominal == (clock,)
        assert occurrence.kind != "gap" or occurrence.nominal[0] < clock
        assert {load(zone).instant(time) for time in occurrence.nominal} == {occurrence.at}


@settings(max_examples=200)
@given(patterns(), zones, st.data())
def test_no_local_time_is_due_twice_and_none_is_lost(expr: str, zone: str, data: st.DataObject) -> None:
    after = data.draw(near_changes(zone))
    nominal = [time for occurrence in _due(expr, zone, after, 400) for time in occurrence.nominal]
    assert len(nominal) == len(set(nominal))
    matches = oracle.matching(_valid(expr).text)
    if nominal:
        last = min(nominal[-1], nominal[0] + timedelta(days=3))
        minutes = (last - nominal[0]) // oracle.MINUTE
        between = (nominal[0] + n * oracle.MINUTE for n in range(minutes + 1))
        assert [time for time in sorted(nominal) if time <= last] == [time for time in between if matches(time)]


@settings(max_examples=100)
@given(st.integers(0, 59), st.integers(0, 23), zones, st.integers(1850, 2190))
def test_a_daily_pattern_loses_no_day(minute: int, hour: int, zone: str, year: int) -> None:
    found = _due(f"{minute} {hour} * * *", zone, datetime(year, 1, 1, tzinfo=UTC), 730)
    dates = [day for occurrence in found for day in occurrence.local_dates]
    first = dates[0]
    assert dates == [first + timedelta(days=n) for n in range(len(dates))]


@settings(max_examples=200)
@given(patterns(), zones, st.data())
def test_asking_from_any_instant_gives_the_rest_of_the_same_series(expr: str, zone: str, data: st.DataObject) -> None:
    after = data.draw(near_changes(zone))
    found = _due(expr, zone, after, 40)
    asked = after + timedelta(minutes=data.draw(st.integers(0, 4000)), microseconds=data.draw(st.integers(0, 999_999)))
    rest = [occurrence for occurrence in found if occurrence.at > asked]
    assert _due(expr, zone, asked, len(rest)) == rest


@settings(max_examples=300)
@given(patterns(), zones, st.integers(0, 120_000), st.data())
def test_a_survey_is_the_same_as_counting_one_by_one(expr: str, zone: str, minutes: int, data: st.DataObject) -> None:
    after = data.draw(instants | near_changes(zone))
    until = after + timedelta(minutes=minutes)
    found = upcoming(_valid(expr), load(zone), after, limit=1_000_000, until=until)
    counted = survey(_valid(expr), load(zone), after, until)
    if not found:
        assert counted is None
        return
    assert counted is not None
    assert (counted.count, counted.first, counted.last) == (len(found), found[0], found[-1])
    assert counted.previous == (found[-2] if len(found) > 1 else None)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati", "Africa/Monrovia"])
@pytest.mark.parametrize("after", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar_are_no_errors(zone: str, after: datetime) -> None:
    found = _due("0 0 * * *", zone, after, 3)
    assert [day.isoformat() for occurrence in found for day in occurrence.local_dates] == (
        ["0001-01-03", "0001-01-04", "0001-01-05"] if after.year == 1 else []
    )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo", "Africa/Casablanca"])
def test_dates_end_with_the_year_2200(zone: str) -> None:
    found = _due("0 9 * * *", zone, datetime(LAST_YEAR, 12, 1, tzinfo=UTC), 100)
    assert found[-1].local_dates == (date(2200, 12, 31),)


def test_a_leap_day_is_eight_years_away_over_2100() -> None:
    found = _due("0 9 29 2 *", "UTC", datetime(2095, 1, 1, tzinfo=UTC), 3)
    assert [occurrence.at.year for occurrence in found] == [2096, 2104, 2108]


def test_an_instant_needs_an_offset() -> None:
    naive = datetime(2027, 1, 1)  # noqa: DTZ001  the mistake under test
    with pytest.raises(Invalid, match="no UTC offset"):
        upcoming(parse("0 9 * * *"), load("UTC"), naive, limit=1)
    with pytest.raises(Invalid, match="no UTC offset"):
        upcoming(parse("0 9 * * *"), load("UTC"), datetime(2026, 1, 1, tzinfo=UTC), limit=1, until=naive)
