"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cli.moments import local, relative, span, utc

AT = datetime(2027, 3, 14, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "read"),
    [
        ("America/New_York", "Sun 2027-03-14 03:00 -04:00"),
        ("Asia/Kathmandu", "Sun 2027-03-14 12:45 +05:45"),
        ("UTC", "Sun 2027-03-14 07:00 +00:00"),
        ("Mars/Olympus", "2027-03-14 07:00Z"),
    ],
)
def test_a_time_is_local_with_its_offset(zone: str, read: str) -> None:
    assert local(AT, zone) == read


def test_seconds_are_shown_where_there_are_any() -> None:
    assert utc(AT) == "2027-03-14 07:00Z"
    assert utc(AT + timedelta(seconds=5)) == "2027-03-14 07:00:05Z"
    assert local(AT + timedelta(seconds=5, microseconds=7), "UTC") == "Sun 2027-03-14 07:00:05 +00:00"


@pytest.mark.parametrize(
    ("seconds", "read"),
    [
        (0, "now"),
        (0.4, "now"),
        (-1, "1 s ago"),
        (59, "in 59 s"),
        (-3_599, "59 min ago"),
        (7_200, "in 2 h"),
        (-86_399, "23 h ago"),
        (86_400 * 400, "in 400 d"),
    ],
)
def test_an_age_is_in_its_largest_unit(seconds: float, read: str) -> None:
    assert relative(AT + timedelta(seconds=seconds), AT) == read


def test_a_span_is_rounded_down() -> None:
    assert span(timedelta(minutes=119)) == "1 h"
