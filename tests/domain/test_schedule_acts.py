"""What people do to a schedule: pause, resume, block, edit, replan, Run now, cancel what waits, delete."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain import schedule_acts, schedule_state, zones
from domain.errors import Conflict
from domain.run import Origin, Run, RunState
from domain.schedule import Admission, Condition
from domain.schedule_mail import DropFromLane
from tests.domain.builders import at
from tests.domain.life import BY, TARGET, Life, ended


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def with_active_run(**changes: Any) -> tuple[Life, Run]:
    """At 09:10, and the run of 09:00 is still active."""
    life = Life(at("08:30"), **changes).live(at("09:00"))
    life.now = at("09:10")
    return life, life.requested[0]


# Pause and resume ----------------------------------------------------------------------------------------------


def test_paused_time_is_neither_run_nor_missed() -> None:
    life = Life(at("11:31"), cron="* * * * *", missed_policy="latest")
    life.now = at("11:31") + timedelta(seconds=30)
    life.pause().live(at("11:35"))
    life.now = at("11:35") + timedelta(seconds=30)
    assert (life.resume().recorded, life.next) == ({}, at("11:36"))


def test_a_pause_of_days_leaves_nothing_to_catch_up() -> None:
    life = Life(at("08:30"), missed_policy="latest").pause().wake(at("10:20", day=5)).resume()
    assert life.recorded == {}
    assert life.live(at("11:00", day=5)).occurrences == [("11:00", "cron")]


def test_what_fell_due_in_a_short_pause_does_not_run_though_it_is_within_its_lateness() -> None:
    life = Life(at("08:59")).pause().wake(at("09:00") + timedelta(seconds=30)).resume()
    assert (life.recorded, life.next) == ({}, at("10:00"))


def test_an_outage_in_the_middle_of_a_pause_misses_nothing() -> None:
    life = Life(at("10:00")).pause().wake(at("12:30"))
    assert (life.wake(at("13:00")).resume().recorded, life.next) == ({}, at("14:00"))


def test_an_outage_that_ends_in_a_pause_misses_nothing() -> None:
    life = Life(at("10:00"))
    life.now = at("12:00")
    life.pause().wake(at("14:00")).resume()
    assert (life.recorded, life.next) == ({}, at("15:00"))


def test_pausing_and_resuming_twice_is_the_same_as_once() -> None:
    life = Life(at("08:30"))
    paused = life.pause().state
    assert life.pause().state == paused
    life.now = at("09:30")
    resumed = life.resume().state
    assert life.resume().state == resumed


def test_after_a_resume_a_restart_recovers_nothing_of_the_pause() -> None:
    life = Life(at("08:30"), missed_policy="latest").pause().wake(at("10:20")).resume().wake(at("10:40"))
    assert life.recorded == {}


def test_resuming_in_the_second_pass_of_an_hour_does_not_repeat_it() -> None:
    life = Life(utc("2027-11-07T05:00"), cron="30 1 * * *", timezone="America/New_York").pause()
    life.wake(utc("2027-11-07T06:15")).resume()
    assert life.next == utc("2027-11-08T06:30")


def test_a_pause_lets_the_active_run_end_and_drops_what_waits() -> None:
    life, run = with_active_run()
    life.pause()
    assert life.dropped == ["schedule_paused"]
    life.ends(run)
    assert life.recorded[run.run_id].state is RunState.SUCCEEDED
    assert life.state.open_runs == ()


# Block and unblock -----------------------------------------------------------------------------------------------


def test_an_unknown_end_blocks_and_blocked_time_is_never_missed() -> None:
    life, run = with_active_run(missed_policy="latest")
    life.ends(run, RunState.UNKNOWN, "instance_lost")
    blocked = life.state.blocked
    assert blocked is not None
    assert (blocked.reason, blocked.run_id) == ("instance_lost", run.run_id)
    life.live(at("14:20")).unblock()
    assert len(life.recorded) == 1
    assert life.next == at("15:00")


def test_the_first_cause_of_a_block_is_kept_and_resume_does_not_clear_it() -> None:
    life, run = with_active_run()
    life.ends(run, RunState.NOT_STARTED, "pointer_null").pause().resume()
    assert life.state.condition is Condition.BLOCKED
    assert life.state.blocked is not None
    assert life.state.blocked.reason == "pointer_null"


@pytest.mark.parametrize("reason", ["capacity", "record_unwritable", "workspace_inactive", "version_changed"])
def test_an_end_that_is_nobody_s_to_mend_does_not_block(reason: str) -> None:
    life, run = with_active_run()
    assert life.ends(run, RunState.NOT_STARTED, reason).state.blocked is None


def test_unblocking_lets_go_of_the_lane_that_the_unknown_run_holds() -> None:
    life, run = with_active_run()
    life.ends(run, RunState.UNKNOWN, "instance_lost")
    (letter,) = schedule_acts.unblock(life.state, BY, life.now).mail
    assert (letter.kind, letter.lane) == ("release", TARGET)


def test_a_report_that_comes_again_changes_nothing_but_the_number_of_the_view() -> None:
    life, run = with_active_run()
    end = ended(run, RunState.UNKNOWN, life.now, "instance_lost")
    once = life.report(end).state
    unblocked = life.unblock().state
    assert life.report(end).state.blocked is None
    assert life.state.but(seq=0) == unblocked.but(seq=0)
    assert once.blocked is not None


# Edits -----------------------------------------------------------------------------------------------------------


def test_new_timing_counts_from_the_edit() -> None:
    life = Life(at("08:02"), cron="0 0 * * *")
    life.now = at("10:02")
    life.edit(cron="*/5 * * * *")
    assert (life.next, life.recorded) == (at("10:05"), {})


def test_what_the_old_pattern_had_due_is_not_missed() -> None:
    life = Life(at("08:30"))
    life.now = at("12:02")
    life.edit(timezone="Europe/Berlin")
    assert (life.recorded, life.next) == ({}, at("13:00"))


@pytest.mark.parametrize(
    "changes",
    [
        {"cron": "5 * * * *"},
        {"collision_policy": "coalesce"},
        {"payload": {"pipeline": "other", "version": "current"}},
        {"priority": 1},
    ],
)
def test_an_edit_that_means_something_drops_what_is_pending(changes: dict[str, Any]) -> None:
    life, run = with_active_run()
    life.waits_in_its_lane(run).edit(**changes)
    assert life.dropped == ["schedule_edited"]
    assert life.state.revision == 2


@pytest.mark.parametrize("changes", [{"name": "finance/renamed"}, {"notes": "Only words."}])
def test_an_edit_of_words_touches_nothing(changes: dict[str, str]) -> None:
    life, run = with_active_run()
    plan = life.waits_in_its_lane(run).state.plan
    life.edit(**changes)
    assert (life.dropped, life.state.plan, life.state.revision) == ([], plan, 2)


def test_saving_the_same_again_is_no_edit() -> None:
    life = Life(at("08:30")).live(at("09:59"))
    assert life.edit().state.revision == 1
    assert life.live(at("10:00")).occurrences == [("09:00", "cron"), ("10:00", "cron")]


def test_an_active_run_keeps_what_it_was_started_with() -> None:
    life, run = with_active_run()
    life.edit(name="finance/renamed", target="pipeline:other")
    life.ends(run)
    assert life.recorded[run.run_id].schedule_name == "finance/close"
    life.live(at("10:00"))
    assert life.requested[-1].target == "pipeline:other"


def test_two_edits_from_one_revision_are_one_edit_and_one_conflict() -> None:
    life = Life(at("08:30")).edit(notes="Mine.")
    with pytest.raises(Conflict) as caught:
        schedule_acts.check_revision(life.state, 1)
    assert (caught.value.code, caught.value.details["current"]) == ("schedule.revision_conflict", 2)


def test_the_same_schedule_made_again_has_an_identity_of_its_own() -> None:
    old, new = Life(at("08:30")), Life(at("08:45"))
    new.state = new.state.but(schedule_id="s2")
    assert old.live(at("09:00")).only.run_id != new.live(at("09:00")).only.run_id


# Lanes -----------------------------------------------------------------------------------------------------------


def test_what_falls_due_for_a_new_lane_waits_for_the_run_in_the_old_one() -> None:
    life, run = with_active_run(collision_policy="queue_latest")
    life.edit(target="pipeline:other").live(at("10:00"))
    assert [sent.run_id for sent in life.requested] == [run.run_id]
    life.live(at("11:00"))
    reasons = [(r.reference_time.hour, r.state, r.reason) for r in life.recorded.values()]
    assert reasons[1:] == [(10, RunState.SKIPPED, "superseded"), (11, RunState.WAITING, "lane")]
    life.ends(run)
    assert [f"{sent.reference_time:%H}" for sent in life.requested] == ["09", "11"]


def test_parallel_admission_remembers_who_accepted_the_risk_while_its_words_stay_the_same() -> None:
    life = Life(at("08:30"), admission="parallel", acknowledged_risk=1)
    first = life.state.acknowledgement
    assert first is not None
    assert (first.by, first.text_version, first.at) == (BY, 1, at("08:30"))
    life.now = at("08:40")
    assert life.edit(notes="Words.").state.acknowledgement == first
    assert life.state.lane != TARGET
    assert life.edit(admission=Admission.SEQUENTIAL).state.acknowledgement is None
    assert life.state.lane == TARGET


# Run now, cancel, delete -----------------------------------------------------------------------------------------


def test_run_now_makes_one_run_per_key_whose_reference_time_is_the_request_s() -> None:
    life = Life(at("08:30")).pause()
    run = life.run_now("a")
    assert (run.origin, run.scheduled_for, run.reference_time) == (Origin.RUN_NOW, None, at("08:30"))
    assert schedule_acts.check_run_now(life.state, "a", "test") == run
    with pytest.raises(Conflict) as caught:
        schedule_acts.check_run_now(life.state, "b", "test")
    assert caught.value.code == "schedule.run.overlap"


def test_run_now_is_refused_while_blocked_and_a_signal_s_refusal_is_a_row() -> None:
    life, run = with_active_run()
    life.ends(run, RunState.UNKNOWN, "instance_lost")
    with pytest.raises(Conflict) as caught:
        schedule_acts.check_run_now(life.state, "a", "test")
    assert caught.value.code == "schedule.blocked"
    assert run.run_id in caught.value.message
    life.take(schedule_acts.refused_run_now(life.state, "a", caught.value, BY, life.now))
    (row,) = (r for r in life.recorded.values() if r.origin is Origin.RUN_NOW)
    assert (row.state, row.reason) == (RunState.SKIPPED, "schedule_blocked")


def test_a_waiting_run_is_cancelled_where_it_waits_and_no_other_is() -> None:
    life, run = with_active_run()
    with pytest.raises(Conflict) as caught:
        schedule_acts.check_drop(life.state, run.run_id)
    assert caught.value.code == "run.not_waiting"
    life.waits_in_its_lane(run)
    schedule_acts.check_drop(life.state, run.run_id)
    assert schedule_acts.drop(life.state, run.run_id, BY, life.now).mail == (
        DropFromLane(lane=TARGET, run_id=run.run_id, by=BY),
    )


def test_a_run_that_waits_at_the_schedule_s_own_gate_is_cancelled_there() -> None:
    life, run = with_active_run(collision_policy="queue_latest")
    life.edit(target="pipeline:other").live(at("10:00"))
    (waiting,) = (r for r in life.recorded.values() if r.state is RunState.WAITING)
    life.take(schedule_acts.drop(life.state, waiting.run_id, BY, life.now))
    assert (life.recorded[waiting.run_id].state, life.recorded[waiting.run_id].reason) == (
        RunState.SKIPPED,
        "operator",
    )
    life.ends(run)
    assert [sent.run_id for sent in life.requested] == [run.run_id]


def test_a_run_that_waits_for_parents_is_cancelled_here() -> None:
    life = Life(at("08:30"), after_schedule_ids=("s0",)).live(at("09:00"))
    waiting = life.only
    schedule_acts.check_drop(life.state, waiting.run_id)
    life.take(schedule_acts.drop(life.state, waiting.run_id, BY, life.now))
    assert (life.only.state, life.only.reason) == (RunState.SKIPPED, "operator")
    assert life.state.waiting == ()


def test_deleting_drops_what_waits_and_ends_once_the_active_run_has() -> None:
    life, run = with_active_run()
    life.take(schedule_acts.delete(life.state, BY, life.now))
    assert life.dropped == ["schedule_deleted"]
    assert not life.state.is_over
    life.ends(run)
    assert life.state.but(outbox=()).is_over
    assert life.live(at("12:00")).next is None


# Zone data -------------------------------------------------------------------------------------------------------


@pytest.fixture
def older_zone_data(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As if from before Vancouver stayed on daylight-saving time: as Los Angeles still changes its clock."""
    load = zones.load
    monkeypatch.setattr(zones, "load", lambda name: load(name.replace("Vancouver", "Los_Angeles")))
    monkeypatch.setattr(zones, "tzdata_version", lambda: "2025b")
    return monkeypatch


VANCOUVER = {"cron": "0 9 * * *", "timezone": "America/Vancouver"}


def test_new_zone_data_moves_what_is_planned_and_says_from_where_to_where(older_zone_data: pytest.MonkeyPatch) -> None:
    life = Life(utc("2026-11-01T18:00"), **VANCOUVER)
    before = life.state
    assert life.next == utc("2026-11-02T17:00")
    assert schedule_state.view(before).tzdata_version == "2025b"
    older_zone_data.undo()
    life.replan()
    assert (life.next, life.recorded) == (utc("2026-11-02T16:00"), {})
    assert schedule_state.view(life.state).tzdata_version == zones.tzdata_version()
    (moved,) = schedule_acts.moved(before, life.state)
    assert (moved.nominal, moved.before, moved.after) == (
        datetime(2026, 11, 2, 9),  # noqa: DTZ001
        utc("2026-11-02T17:00"),
        utc("2026-11-02T16:00"),
    )


def test_a_time_that_new_zone_data_has_put_into_the_past_is_said_and_neither_run_nor_missed(
    older_zone_data: pytest.MonkeyPatch,
) -> None:
    """By the old data it is due at 17:00Z, by the new it was at 16:00Z; the replan comes at 16:30Z."""
    life = Life(utc("2026-11-01T18:00"), **VANCOUVER)
    older_zone_data.undo()
    before = life.wake(utc("2026-11-02T16:30")).state
    life.replan()
    assert (life.recorded, life.next) == ({}, utc("2026-11-03T16:00"))
    assert [(one.before, one.after) for one in schedule_acts.moved(before, life.state)] == [
        (utc("2026-11-02T17:00"), None)
    ]


def test_a_time_already_dealt_with_is_not_repeated_where_new_data_puts_it_later(
    older_zone_data: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ran at 16:00Z under the new data; going back to the old puts the same local time at 17:00Z."""
    patched = zones.load
    older_zone_data.undo()
    life = Life(utc("2026-11-01T18:00"), **VANCOUVER).wake(utc("2026-11-02T16:00"))
    monkeypatch.setattr(zones, "load", patched)
    life.wake(utc("2026-11-02T16:30")).replan()
    assert life.next == utc("2026-11-03T17:00")
    assert life.live(utc("2026-11-02T23:00")).occurrences == [("16:00", "cron")]


def test_a_replan_without_new_data_changes_nothing() -> None:
    life = Life(at("08:30"))
    before = life.state
    assert life.replan().next == at("09:00")
    assert schedule_acts.moved(before, life.state) == ()


def test_a_replan_deals_first_with_what_is_due_by_the_old_plan() -> None:
    life = Life(at("08:30"))
    life.now = at("09:05")
    life.replan()
    assert life.occurrences == [("09:00", "cron")]
