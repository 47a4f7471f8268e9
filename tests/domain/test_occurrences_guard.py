"""Counting, ranging and the save-time guard, on examples worked out by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from pydantic import TypeAdapter

from domain.cron import parse
from domain.errors import Invalid
from domain.occurrences import Occurrence, check_interval, closest_pair, survey, upcoming
from domain.zones import load

NEW_YORK = load("America/New_York")
NOW = datetime(2026, 12, 1, tzinfo=UTC)
SPRING = datetime(2027, 3, 10, tzinfo=UTC)


def test_a_year_of_five_minutes_is_counted_with_both_clock_changes() -> None:
    year = survey(
        parse("*/5 * * * *"), NEW_YORK, datetime(2027, 1, 1, 5, tzinfo=UTC), datetime(2028, 1, 1, 5, tzinfo=UTC)
    )
    assert year is not None
    # The skipped hour is due with the one after it, the repeated hour only once.
    assert year.count == 365 * 288 - 12
    assert year.first.at == datetime(2027, 1, 1, 5, 5, tzinfo=UTC)
    assert year.last.at == datetime(2028, 1, 1, 5, tzinfo=UTC)
    assert year.previous is not None
    assert year.previous.at == datetime(2028, 1, 1, 4, 55, tzinfo=UTC)


def test_the_span_of_a_survey_leaves_out_its_beginning_and_includes_its_end() -> None:
    noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    one = survey(parse("0 12 * * *"), load("UTC"), noon - timedelta(days=1), noon)
    assert one is not None
    assert (one.count, one.first, one.last, one.previous) == (1, one.last, one.first, None)
    assert survey(parse("0 12 * * *"), load("UTC"), noon, noon + timedelta(hours=23, minutes=59)) is None
    assert survey(parse("0 12 * * *"), load("UTC"), noon, noon - timedelta(days=3)) is None


def test_a_survey_ending_in_the_repeated_hour_ends_with_the_first_pass() -> None:
    second_pass = datetime(2027, 11, 7, 6, 30, tzinfo=UTC)
    found = survey(parse("*/15 * * * *"), NEW_YORK, second_pass - timedelta(days=1), second_pass)
    assert found is not None
    assert found.last.at == datetime(2027, 11, 7, 5, 45, tzinfo=UTC)
    assert found.last.kind == "overlap"


@pytest.mark.parametrize(
    ("expr", "now", "seconds", "local"),
    [
        ("* * * * *", NOW, 60, "2026-11-30T19:01-05:00"),
        ("0,59 * * * *", NOW, 60, "2026-11-30T19:59-05:00"),
        ("*/7 * * * *", NOW, 240, "2026-11-30T19:56-05:00"),
        ("*/5 * * * *", NOW, 300, "2026-11-30T19:05-05:00"),
        ("59 23,0 * * *", NOW, 3600, "2026-11-30T23:59-05:00"),
        ("0 9 * * *", NOW, 86_400, "2026-12-01T09:00-05:00"),
        # 02:07 does not exist on 14 March 2027 and is due at the change, seven minutes before 03:07.
        ("7 * * * *", SPRING, 420, "2027-03-14T03:00-04:00"),
    ],
)
def test_the_closest_pair_is_the_first_of_the_closest(expr: str, now: datetime, seconds: int, local: str) -> None:
    pair = closest_pair(parse(expr), NEW_YORK, now)
    assert pair is not None
    assert (pair[1].at - pair[0].at).total_seconds() == seconds
    assert NEW_YORK.shown(pair[0].at) == local


@pytest.mark.parametrize(
    "expr", ["*/5 * * * *", "*/13 0-3 * * *", "59 23 * * 0,1", "7 * * * *", "0 2,3 * * *", "30 2 14 3 *"]
)
@pytest.mark.parametrize("now", [NOW, SPRING, datetime(2027, 11, 5, 1, 2, 3, tzinfo=UTC)])
def test_the_closest_pair_is_what_looking_at_all_of_them_finds(expr: str, now: datetime) -> None:
    found = upcoming(parse(expr), NEW_YORK, now, limit=100_000, until=now + timedelta(days=14))
    pairs = list(pairwise(found))
    expected = min(pairs, key=lambda pair: pair[1].at - pair[0].at) if pairs else None
    assert closest_pair(parse(expr), NEW_YORK, now) == expected


def test_the_guard_names_both_occurrences_with_local_times() -> None:
    with pytest.raises(Invalid) as refusal:
        check_interval(parse("7 * * * *"), NEW_YORK, SPRING, 600)
    assert refusal.value.code == "schedule.validation.interval_too_short"
    assert refusal.value.field == "cron"
    assert "2027-03-14T03:00-04:00" in refusal.value.message
    assert "2027-03-14T03:07-04:00" in refusal.value.message
    assert "420 s" in refusal.value.message
    assert "at least 600 s" in refusal.value.message


@pytest.mark.parametrize(("expr", "minimum"), [("*/5 * * * *", 300), ("7 * * * *", 420), ("0 9 1 1 *", 10**9)])
def test_the_guard_lets_pass_what_is_far_enough_apart_or_due_at_most_once(expr: str, minimum: int) -> None:
    check_interval(parse(expr), NEW_YORK, SPRING, minimum)


def test_the_guard_does_not_look_beyond_fourteen_days() -> None:
    after_change = datetime(2027, 2, 28, 7, 0, tzinfo=UTC)
    # The change is at 07:00Z on 14 March: at the end of the 14 days, with its 03:02 just beyond.
    check_interval(parse("2 * * * *"), NEW_YORK, after_change, 300)
    with pytest.raises(Invalid):
        check_interval(parse("2 * * * *"), NEW_YORK, after_change + timedelta(minutes=2), 300)


def test_an_occurrence_belongs_to_the_dates_it_was_meant_for() -> None:
    # Nuuk goes from 23:00 on Saturday to 00:00 on Sunday.
    found = upcoming(parse("0,30 0,23 * * *"), load("America/Nuuk"), datetime(2026, 3, 28, 12, tzinfo=UTC), limit=1)[0]
    assert found.at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert found.local_dates == (date(2026, 3, 28), date(2026, 3, 29))


def test_an_occurrence_survives_being_written_as_json() -> None:
    adapter = TypeAdapter(Occurrence)
    found = upcoming(parse("0,30 2 * * *"), NEW_YORK, SPRING, limit=20)
    assert "gap" in {occurrence.kind for occurrence in found}
    assert [adapter.validate_json(adapter.dump_json(occurrence)) for occurrence in found] == found
