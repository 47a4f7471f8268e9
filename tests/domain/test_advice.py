"""What an author is warned of, with the figures."""

from __future__ import annotations

from datetime import timedelta

from domain import advice
from tests.domain.builders import at, definition

NOW = at("00:00")
LATE = {"close": timedelta(minutes=22, seconds=26)}


def test_a_pair_that_fits_needs_no_word() -> None:
    close = definition(name="close", cron="0 6 * * *")
    pulse = definition(name="pulse", cron="0 7 * * *", after_schedule_ids=("close",))
    assert advice.on_parents(pulse, {"close": close}, LATE, NOW) == ()


def test_dates_without_the_parent_are_counted_and_dates_that_never_meet_are_said_so() -> None:
    pulse = definition(name="pulse", cron="0 7 * * *", after_schedule_ids=("close",))
    (some,) = advice.on_parents(pulse, {"close": definition(name="close", cron="0 6 * * 1-5")}, {}, NOW)
    assert "not due on 16 of this schedule's 60 occurrences" in some
    assert "first on 2026-12-05" in some
    (never,) = advice.on_parents(pulse, {"close": definition(name="close", cron="0 6 1 6 *")}, {}, NOW)
    assert "never due on a date of this schedule" in never


def test_a_parent_due_later_is_named_with_the_wait() -> None:
    pulse = definition(name="pulse", cron="30 0 * * *", after_schedule_ids=("close",))
    (late,) = advice.on_parents(pulse, {"close": definition(name="close", cron="30 23 * * *")}, {}, NOW)
    assert "up to 23 h 00 min" in late


def test_a_deadline_before_the_parent_s_usual_end_is_named_with_the_figures() -> None:
    close = definition(name="close", cron="0 6 * * *")
    pulse = definition(name="pulse", cron="10 6 * * *", after_schedule_ids=("close",), dependency_deadline="06:20")
    (tight,) = advice.on_parents(pulse, {"close": close}, LATE, NOW)
    assert "usually takes 22 min 26 s (95th percentile)" in tight
    assert "20 min 00 s after it is due" in tight
    assert advice.on_parents(pulse, {"close": close}, {}, NOW) == ()


def test_schedules_closer_than_the_earlier_usually_takes_are_named_whichever_is_saved() -> None:
    close = definition(name="close", cron="55 15 * * *", timezone="America/New_York")
    pulse = definition(name="pulse", cron="10 16 * * *", timezone="America/New_York")
    for saved, beside in (("close", "pulse"), ("pulse", "close")):
        both = {"close": close, "pulse": pulse}
        (said,) = advice.on_overlaps(saved, both[saved], {beside: both[beside]}, LATE, NOW)
        assert said.startswith("pulse is due 15 min 00 s after close, first at 2026-12-01 21:10Z")
    assert advice.on_overlaps("pulse", pulse, {"close": close}, {"close": timedelta(minutes=15)}, NOW) == ()


def test_schedules_that_wait_for_each_other_are_not_independent() -> None:
    edges: dict[str, tuple[str, ...]] = {"gate": ("pulse",), "pulse": ("close",), "close": (), "other": ()}
    assert not advice.independent("close", "gate", edges)
    assert not advice.independent("gate", "close", edges)
    assert advice.independent("gate", "other", edges)


def test_a_dependent_that_is_due_every_minute_is_advised_without_looking_at_each_pair() -> None:
    """Its parent has 1,440 occurrences for each of its 86,400; looking at all of them would take minutes."""
    close = definition(name="close", cron="* * * * *")
    pulse = definition(name="pulse", cron="* * * * *", after_schedule_ids=("close",), dependency_deadline="06:20")
    (tight,) = advice.on_parents(pulse, {"close": close}, LATE, NOW)
    assert "of 86400 occurrences in the next 60 days" in tight
