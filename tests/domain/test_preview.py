"""Patterns in words, and what a preview says before anything is saved."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from domain.cron import Pattern, parse
from domain.errors import Invalid
from domain.explain import in_words
from domain.preview import Preview, PreviewRow, preview
from domain.zones import tzdata_version

NOW = datetime(2026, 12, 1, tzinfo=UTC)

WORDS = {
    "* * * * *": "Every minute",
    "*/5 * * * *": "Every 5 minutes",
    "*/45 * * * *": "At minutes 0 and 45 of every hour",
    "0 * * * *": "At minute 0 of every hour",
    "5 * * * *": "At minute 5 of every hour",
    "*/15 9-17 * * MON-FRI": "Every 15 minutes from 09:00 to 17:45 on Monday to Friday",
    "* 9 * * *": "Every minute from 09:00 to 09:59 every day",
    "*/20 8,12 * * *": "At 08:00, 08:20, 08:40, 12:00, 12:20 and 12:40 every day",
    "*/10 8,12 * * *": "Every 10 minutes in hours 08 and 12 every day",
    "7 */2 * * *": "At minute 7 of every 2nd hour from midnight every day",
    "*/10 */3 * * *": "Every 10 minutes in every 3rd hour from midnight every day",
    "10-20/5,40 8-9 * * *": "At minutes 10, 15, 20 and 40 of hours 08 and 09 every day",
    "30 2 * * *": "At 02:30 every day",
    "0 9,17 * * 1-5": "At 09:00 and 17:00 on Monday to Friday",
    "0 9 * * 0,6": "At 09:00 on Saturday and Sunday",
    "0 9 * * 5-7": "At 09:00 on Friday to Sunday",
    "0 9 1 * *": "At 09:00 on day 1 of the month",
    "0 9 1 1 *": "At 09:00 on day 1 of January",
    "0 9 1,15,20-25 6-8 *": "At 09:00 on days 1, 15 and 20 to 25 of June to August",
    "0 9 * 2,3 *": "At 09:00 every day in February and March",
    "* * * 12 *": "Every minute in December",
    "0 9 * JAN-MAR/2 mon-fri": "At 09:00 on Monday to Friday in January and March",
    "0 9 13 * 5": "At 09:00 on day 13 of the month and on every Friday",
    "0 9 13 6 5": "At 09:00 on day 13 of June and on every Friday in June",
    "0 9 1-31 * 1": "At 09:00 every day",
    "0 9 */16 * 1": "At 09:00 on days 1 and 17 of the month where that is a Monday",
    "0 9 29 2 */2": "At 09:00 on day 29 of February where that is a Tuesday, Thursday, Saturday or Sunday",
}


@pytest.mark.parametrize("expr", WORDS)
def test_patterns_are_said_in_words(expr: str) -> None:
    assert in_words(parse(expr)) == WORDS[expr]


_VALUES = [st.sets(st.integers(low, high), min_size=1) for low, high in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))]


@given(st.tuples(*(values.map(sorted) for values in _VALUES)), st.booleans())
def test_every_pattern_has_words(fields: tuple[list[int], ...], either_day: bool) -> None:
    minutes, hours, days, months, weekdays = map(tuple, fields)
    words = in_words(Pattern("", minutes, hours, days, months, weekdays, either_day))
    assert words.startswith(("At ", "Every "))
    assert "  " not in words


def test_a_preview_shows_what_the_rule_did() -> None:
    shown = preview(" 30 1,2 * * * ", "America/New_York", datetime(2027, 3, 14, 5, tzinfo=UTC), 2)
    assert (shown.expression, shown.zone, shown.tzdata_version) == (
        "30 1,2 * * *",
        "America/New_York",
        tzdata_version(),
    )
    assert shown.words == "At 01:30 and 02:30 every day"
    assert shown.rows == (
        PreviewRow(
            at=datetime(2027, 3, 14, 6, 30, tzinfo=UTC),
            local="2027-03-14T01:30-05:00",
            offset="-05:00",
            nominal=("2027-03-14T01:30",),
            rule="ordinary",
        ),
        PreviewRow(
            at=datetime(2027, 3, 14, 7, tzinfo=UTC),
            local="2027-03-14T03:00-04:00",
            offset="-04:00",
            nominal=("2027-03-14T02:30",),
            rule="gap",
        ),
    )
    autumn = preview("30 1 * * *", "America/New_York", datetime(2027, 11, 7, tzinfo=UTC), 1)
    assert autumn.rows[0].rule == "overlap: first pass"


def _warnings(expr: str, zone: str = "America/New_York", now: datetime = NOW) -> tuple[str, ...]:
    return preview(expr, zone, now, 1).warnings


def test_a_quarter_hourly_pattern_is_silent_in_the_repeated_hour() -> None:
    assert _warnings("*/15 * * * *") == (
        "The clock goes forward from 2027-03-14 02:00 to 03:00: the 4 times from 02:00 to 02:45 do not exist and run "
        "once, at the change itself, 2027-03-14T03:00-04:00. The next run follows 15 min later, at 03:15.",
        "The clock goes back from 2027-11-07 02:00 to 01:00: the 4 times from 01:00 to 01:45 happen twice and run the "
        "first time only; the repeat, 2027-11-07T06:00Z to 2027-11-07T07:00Z, is silent.",
    )


def test_an_hourly_pattern_runs_at_the_change_and_five_minutes_later() -> None:
    assert _warnings("5 * * * *")[0] == (
        "The clock goes forward from 2027-03-14 02:00 to 03:00: 02:05 does not exist and runs at the change itself, "
        "2027-03-14T03:00-04:00. The next run follows 5 min later, at 03:05."
    )


def test_a_daily_pattern_is_warned_about_only_where_a_change_touches_it() -> None:
    assert _warnings("0 9 * * *") == ()
    assert _warnings("30 2 * * *") == (
        "The clock goes forward from 2027-03-14 02:00 to 03:00: 02:30 does not exist and runs at the change itself, "
        "2027-03-14T03:00-04:00.",
    )
    assert _warnings("30 1 * * *") == (
        "The clock goes back from 2027-11-07 02:00 to 01:00: 01:30 happens twice and runs the first time only; the "
        "repeat, 2027-11-07T06:00Z to 2027-11-07T07:00Z, is silent.",
    )
    assert _warnings("30 2 15 * *") == ()
    assert _warnings("*/5 * * * *", "Asia/Tokyo") == ()


def test_a_whole_day_that_is_skipped_is_said_with_its_dates() -> None:
    assert _warnings("0 */12 * * *", "Pacific/Apia", datetime(2011, 12, 1, tzinfo=UTC))[0].startswith(
        "The clock goes forward from 2011-12-30 00:00 to 2011-12-31 00:00: the 2 times from 00:00 to 12:00 do not "
        "exist and run once, at the change itself, 2011-12-31T00:00+14:00."
    )


def test_a_repeat_that_is_going_on_is_warned_about() -> None:
    during = datetime(2026, 11, 1, 6, 30, tzinfo=UTC)
    assert "2026-11-01T06:00Z to 2026-11-01T07:00Z, is silent" in _warnings("*/5 * * * *", now=during)[0]
    assert "2026-11-01" not in _warnings("*/5 * * * *", now=datetime(2026, 11, 1, 7, tzinfo=UTC))[0]


def test_a_preview_survives_being_written_as_json() -> None:
    adapter = TypeAdapter(Preview)
    shown = preview("*/15 * * * *", "Europe/Berlin", NOW, 5)
    assert adapter.validate_json(adapter.dump_json(shown)) == shown


@pytest.mark.parametrize(("expr", "zone", "field"), [("0 9 30 2 *", "UTC", "cron"), ("0 9 * * *", "EST", "timezone")])
def test_what_is_refused_at_save_is_refused_in_a_preview(expr: str, zone: str, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        preview(expr, zone, NOW, 1)
    assert refusal.value.field == field
