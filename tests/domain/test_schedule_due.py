"""Due, late and missed over a schedule's whole state: each line of the table, and what users elsewhere met."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain import occurrences, schedule_state
from domain.cron import parse
from domain.run import Origin, RunState
from domain.schedule import Condition
from domain.zones import load
from tests.domain.builders import at
from tests.domain.life import Life


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("late", [0, 1.8, 600])
def test_an_occurrence_within_its_lateness_is_an_ordinary_run(late: float) -> None:
    life = Life(at("08:30")).wake(at("09:00") + timedelta(seconds=late))
    run = life.only
    assert (run.state, run.origin, run.scheduled_for, run.recorded_at) == (
        RunState.QUEUED,
        Origin.CRON,
        at("09:00"),
        life.now,
    )
    assert life.summaries == []
    assert [sent.run_id for sent in life.requested] == [run.run_id]


def test_its_lateness_is_on_its_trail() -> None:
    life = Life(at("08:30")).wake(at("09:00") + timedelta(seconds=1.8))
    assert [row.data for row in life.trail] == [{"lateness_seconds": 1.8}]


@pytest.mark.parametrize(
    ("policy", "late", "runs"),
    [
        ("skip", 240, "cron"),
        ("skip", 600, "cron"),
        ("skip", 601, None),
        ("latest", 601, "catch_up"),
        ("latest", 86_400, "catch_up"),
        ("latest", 86_401, None),
    ],
)
def test_the_bounds_of_both_policies_are_inclusive(policy: str, late: int, runs: str | None) -> None:
    life = Life(at("08:30"), cron="0 9 1 * *", missed_policy=policy).wake(at("09:00") + timedelta(seconds=late))
    assert life.occurrences == ([("09:00", runs)] if runs else [])
    assert len(life.summaries) == (0 if runs else 1)


@pytest.mark.parametrize(("policy", "origin"), [("skip", "cron"), ("latest", "catch_up")])
def test_after_a_night_s_outage_the_latest_runs_and_the_others_are_one_row(policy: str, origin: str) -> None:
    life = Life(at("20:30"), missed_policy=policy).wake(at("08:05", day=2))
    assert life.occurrences == [("08:00", origin)]
    assert life.summaries == [("01 21:00", "02 07:00", 11)]
    assert life.next == at("09:00", day=2)


def test_too_late_for_its_window_the_latest_joins_the_summary() -> None:
    life = Life(at("20:30")).wake(at("08:11", day=2))
    assert life.occurrences == []
    assert life.summaries == [("01 21:00", "02 08:00", 12)]


@pytest.mark.parametrize(("cron", "years"), [("* * * * *", 3), ("*/5 * * * *", 1)])
def test_years_of_outage_cost_one_row_and_no_list_of_what_was_missed(cron: str, years: int) -> None:
    life = Life(at("00:00"), cron=cron)
    life.wake(at("00:00") + timedelta(days=365 * years))
    assert len(life.recorded) == 2
    (count,) = (run.missed.count for run in life.recorded.values() if run.missed)
    assert count == 365 * years * (1440 if cron.startswith("* ") else 288) - 1
    assert len(life.lookups) == 2


def test_a_weekly_schedule_whose_host_sleeps_says_so_every_week() -> None:
    asleep = Life(at("09:00", day=6), cron="0 3 * * 0")
    for week in range(1, 4):
        asleep.wake(at("09:00", day=6) + timedelta(weeks=week))
    assert [row[2] for row in asleep.summaries] == [1, 1, 1]
    assert asleep.occurrences == []
    catching_up = Life(at("09:00", day=6), cron="0 3 * * 0", missed_policy="latest")
    for week in range(1, 4):
        catching_up.wake(at("09:00", day=6) + timedelta(weeks=week))
    assert catching_up.occurrences == [("03:00", "catch_up")] * 3


def test_a_local_time_that_a_gap_moved_is_missed_or_caught_up_at_its_instant() -> None:
    fields = {"cron": "30 2 * * *", "timezone": "America/New_York"}
    skips = Life(utc("2027-03-14T06:50"), **fields).wake(utc("2027-03-14T07:20"))
    assert skips.summaries == [("14 07:00", "14 07:00", 1)]
    latest = Life(utc("2027-03-14T06:50"), missed_policy="latest", **fields).wake(utc("2027-03-14T07:20"))
    assert latest.only.scheduled_for == utc("2027-03-14T07:00")
    assert latest.only.nominal == (datetime(2027, 3, 14, 2, 30),)  # noqa: DTZ001
    for life in (skips, latest):
        assert life.next == utc("2027-03-15T06:30")


def test_the_second_pass_of_an_hour_holds_nothing_to_miss() -> None:
    life = Life(utc("2027-11-07T05:45"), cron="*/15 * * * *", timezone="America/New_York")
    life.wake(utc("2027-11-07T06:50"))
    assert life.recorded == {}
    assert life.next == utc("2027-11-07T07:00")


def test_a_time_that_happens_twice_is_not_repeated_after_a_restart_in_between() -> None:
    life = Life(utc("2027-11-07T05:00"), cron="30 1 * * *", timezone="America/New_York")
    life.wake(utc("2027-11-07T05:30")).wake(utc("2027-11-07T06:20")).wake(utc("2027-11-07T06:30"))
    assert life.occurrences == [("05:30", "cron")]
    assert life.next == utc("2027-11-08T06:30")


def test_two_local_times_on_one_instant_do_not_collide_with_each_other() -> None:
    life = Life(utc("2027-03-14T06:00"), cron="0 2,3 * * *", timezone="America/New_York")
    life.live(utc("2027-03-14T12:00"))
    assert life.occurrences == [("07:00", "cron")]
    assert len(life.only.nominal) == 2


def test_a_crash_anywhere_in_recovery_decides_the_same_again() -> None:
    """Deciding is one step over one state, so whoever does it again from the state before gets the same two rows."""
    before = Life(at("20:30"), missed_policy="latest")
    again = Life(at("20:30"), missed_policy="latest")
    for life in (before, again):
        life.wake(at("08:05", day=2))
    assert before.recorded == again.recorded
    assert len(before.wake(at("08:05", day=2)).recorded) == 2


def test_catching_up_uses_the_revision_that_was_in_force_when_it_was_due() -> None:
    life = Life(at("08:30"))
    life.now = at("09:05")
    life.edit(payload={"pipeline": "finance/close", "version": "current", "parameters": {"a": 1}})
    assert life.only.schedule_revision == 1
    life.wake(at("10:00"))
    assert [run.schedule_revision for run in life.recorded.values()] == [1, 2]


def test_a_clock_that_jumps_ahead_makes_one_run_and_one_row() -> None:
    life = Life(at("10:00"), cron="* * * * *").wake(at("11:00"))
    assert life.occurrences == [("11:00", "cron")]
    assert life.summaries == [("01 10:01", "01 10:59", 59)]


def test_a_clock_that_is_set_back_repeats_nothing() -> None:
    life = Life(at("10:00"), cron="* * * * *").wake(at("11:00")).wake(at("10:30"))
    assert life.occurrences == [("11:00", "cron")]
    assert life.next == at("11:01")


def test_a_clock_from_1970_counts_and_does_not_build_what_lies_between() -> None:
    life = Life(utc("1970-01-02T00:00"), cron="0 * * * *").wake(at("12:00"))
    assert len(life.recorded) == 2
    assert life.next == at("13:00")


def test_steps_of_some_seconds_lose_and_double_nothing_over_a_day() -> None:
    life = Life(at("00:00"))
    for hour in range(1, 24):
        due = at(f"{hour:02}:00")
        for seconds in (-3, 0, -2, 4):
            life.wake(due + timedelta(seconds=seconds))
    assert life.occurrences == [(f"{hour:02}:00", "cron") for hour in range(1, 24)]


def test_while_the_workspace_is_inactive_nothing_is_recorded_and_after_it_all_is_an_outage_s_backlog() -> None:
    life = Life(at("08:30"), missed_policy="latest").set_active(False).live(at("12:30"))
    assert (life.recorded, life.next) == ({}, None)
    life.set_active(True)
    assert life.occurrences == [("12:00", "catch_up")]
    assert life.summaries == [("01 09:00", "01 11:00", 3)]
    assert life.set_active(True).next == at("13:00")


@pytest.mark.parametrize("damage", [{"cron": "61 * * * *"}, {"cron": "0 0 30 2 *"}, {"timezone": "Mars/Olympus"}])
def test_a_definition_that_is_no_longer_accepted_blocks_visibly_and_asks_no_more(damage: dict[str, str]) -> None:
    life = Life(at("08:30"))
    life.take(life.state.but(definition=life.state.definition.model_copy(update=damage), plan=None))
    blocked = life.state.blocked
    assert blocked is not None
    assert (blocked.reason, blocked.run_id, life.state.condition) == ("definition_invalid", None, Condition.BLOCKED)
    assert blocked.message
    assert schedule_state.view(life.state).blocked == blocked
    asked = len(life.lookups)
    life.wake(at("12:30"))
    assert len(life.lookups) == asked
    assert life.recorded == {}


def test_it_stays_blocked_until_it_is_mended_and_then_counts_from_there() -> None:
    life = Life(at("08:30"))
    life.take(life.state.but(definition=life.state.definition.model_copy(update={"cron": "bad"}), plan=None))
    life.now = at("10:30")
    assert life.unblock().state.blocked is not None
    life.edit(cron="0 * * * *").unblock()
    assert life.state.blocked is None
    assert (life.next, life.recorded) == (at("11:00"), {})


def test_what_was_planned_while_it_was_accepted_still_runs() -> None:
    life = Life(at("08:30"), cron="0 9 * * *")
    life.take(life.state.but(definition=life.state.definition.model_copy(update={"cron": "bad"})))
    assert life.state.blocked is None
    life.wake(at("09:00"))
    assert life.occurrences == [("09:00", "cron")]
    assert life.state.blocked is not None


@pytest.mark.parametrize("cron", ["0 9 * * *", "*/5 * * * *", "0 9 29 2 *"])
def test_people_see_five_occurrences_ahead_however_few_are_planned(cron: str) -> None:
    life = Life(at("08:30"), cron=cron)
    for _ in range(20):
        wanted = occurrences.upcoming(parse(cron), load("Africa/Abidjan"), life.now, limit=5)
        assert list(life.state.ahead) == wanted
        assert life.state.next_planned is not None
        life.wake(life.state.next_planned.at)
