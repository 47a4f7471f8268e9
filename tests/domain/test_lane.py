"""Whose turn it is: each policy's table, the order of turns, and what time does to those who wait."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.lane import (
    FIRST_RETRY,
    LAST_RETRY,
    Lane,
    LaneDecision,
    LaneEntry,
    arrive,
    next_wake,
    released,
    tick,
    withdrawn,
)
from domain.run import Origin, RunState
from domain.schedule import CollisionPolicy
from tests.domain.builders import NOON, at, entry

SKIP, QUEUE, RETRY, COALESCE = (
    CollisionPolicy.SKIP,
    CollisionPolicy.QUEUE_LATEST,
    CollisionPolicy.RETRY,
    CollisionPolicy.COALESCE,
)


def held_by(holder: LaneEntry, *arriving: LaneEntry) -> Lane:
    lane = arrive(Lane(), holder, holder.run.reference_time).lane
    for waiting in arriving:
        lane = arrive(lane, waiting, waiting.run.reference_time).lane
    return lane


def ends(decision: LaneDecision) -> list[tuple[str, str | None, str | None]]:
    return [
        (change.run.run_id, change.run.reason, change.run.stands_in)
        for change in decision.changes
        if change.run.state is RunState.SKIPPED
    ]


def waiting_ids(lane: Lane) -> list[str]:
    return [waiting.run.run_id for waiting in lane.waiting]


@pytest.mark.parametrize("policy", CollisionPolicy)
def test_a_free_lane_is_taken_at_once(policy: CollisionPolicy) -> None:
    decision = arrive(Lane(), entry(policy=policy), NOON)
    assert decision.started is not None
    assert decision.lane.holder == decision.started
    assert decision.changes == ()


@pytest.mark.parametrize("policy", CollisionPolicy)
def test_a_run_the_lane_knows_changes_nothing(policy: CollisionPolicy) -> None:
    lane = held_by(entry("s2"), entry(policy=policy))
    for known in (entry("s2"), entry(policy=policy)):
        if policy is SKIP and known.run.schedule_id == "s1":
            continue
        assert arrive(lane, known, at("12:05")) == LaneDecision(lane=lane)


def test_skip_ends_as_overlap_against_its_own_run_and_as_busy_against_another() -> None:
    newer = entry(scheduled_for=at("12:10"))
    assert ends(arrive(held_by(entry()), newer, at("12:10"))) == [(newer.run.run_id, "overlap", None)]
    assert ends(arrive(held_by(entry("s2")), newer, at("12:10"))) == [(newer.run.run_id, "busy", None)]


def test_queue_latest_keeps_the_newest_and_links_the_older_to_it() -> None:
    older, newer = entry(policy=QUEUE), entry(scheduled_for=at("12:10"), policy=QUEUE)
    decision = arrive(held_by(entry("s2"), older), newer, at("12:10"))
    assert ends(decision) == [(older.run.run_id, "superseded", newer.run.run_id)]
    assert waiting_ids(decision.lane) == [newer.run.run_id]


def test_coalesce_keeps_the_first_and_counts_the_newer_into_it() -> None:
    first, second, third = (entry(scheduled_for=at(f"12:{m}0"), policy=COALESCE) for m in (1, 2, 3))
    decision = arrive(held_by(entry("s2"), first, second), third, at("12:30"))
    assert ends(decision) == [(third.run.run_id, "coalesced", first.run.run_id)]
    (kept,) = decision.lane.waiting
    assert kept.run.folded is not None
    assert (kept.run.run_id, kept.run.folded.count) == (first.run.run_id, 3)
    assert (kept.run.folded.first, kept.run.folded.newest) == (at("12:10"), at("12:30"))


def test_retry_keeps_the_first_and_the_newer_gives_way() -> None:
    first, newer = entry(policy=RETRY), entry(scheduled_for=at("12:10"), policy=RETRY)
    decision = arrive(held_by(entry("s2"), first), newer, at("12:10"))
    assert ends(decision) == [(newer.run.run_id, "overlap", None)]
    assert waiting_ids(decision.lane) == [first.run.run_id]


def test_retry_comes_back_at_its_own_growing_and_bounded_pauses() -> None:
    lane, now, pauses = held_by(entry("s2"), entry(policy=RETRY)), NOON, []
    for _ in range(6):
        wake = next_wake(lane)
        assert wake is not None
        pauses.append(wake - now)
        lane, now = tick(lane, wake).lane, wake
    assert pauses[:4] == [FIRST_RETRY, FIRST_RETRY * 2, FIRST_RETRY * 4, FIRST_RETRY * 8]
    assert pauses[4:] == [LAST_RETRY, LAST_RETRY]


def test_a_retry_is_tried_for_as_long_as_it_is_worth_starting() -> None:
    """A week of it, the longest there is."""
    week = timedelta(days=7)
    lane = held_by(entry("s2"), entry(policy=RETRY, start_by=NOON + week))
    tries = 0
    while lane.waiting:
        wake = next_wake(lane)
        assert wake is not None
        lane = tick(lane, wake).lane
        tries += 1
    assert tries > week / LAST_RETRY


def test_a_retry_gives_way_to_all_others_until_its_time_to_try_and_takes_a_lane_that_nobody_wants() -> None:
    retry, queued = entry(policy=RETRY, priority=1), entry("s3", at("12:00:05"), QUEUE, priority=9)
    lane = held_by(entry("s2"), retry, queued)
    assert lane.holder is not None
    before_its_time = released(lane, lane.holder.run.run_id, at("12:00:10"))
    assert before_its_time.started is not None
    assert before_its_time.started.run.schedule_id == "s3"
    nobody_else = released(before_its_time.lane, queued.run.run_id, at("12:00:20"))
    assert nobody_else.started is not None
    assert nobody_else.started.run.schedule_id == "s1"
    at_its_time = released(lane, lane.holder.run.run_id, at("12:00:30"))
    assert at_its_time.started is not None
    assert at_its_time.started.run.schedule_id == "s1"


@pytest.mark.parametrize("policy", CollisionPolicy)
def test_a_run_now_waits_under_every_policy_and_is_never_displaced(policy: CollisionPolicy) -> None:
    asked = entry(policy=policy, origin=Origin.RUN_NOW, run_id="s1-now")
    lane = held_by(entry("s2"), asked)
    assert waiting_ids(lane) == ["s1-now"]
    after = arrive(lane, entry(scheduled_for=at("12:10"), policy=policy), at("12:10"))
    assert "s1-now" in waiting_ids(after.lane)
    if policy is SKIP:
        assert [reason for _, reason, _ in ends(after)] == ["overlap"]


def test_the_lane_goes_by_priority_then_due_time_then_arrival() -> None:
    due = {"low": 9, "late": 1, "early": 1, "also-early": 1}
    times = {"low": "12:01", "late": "12:03", "early": "12:02", "also-early": "12:02"}
    arriving = [entry(name, at(times[name]), QUEUE, priority) for name, priority in due.items()]
    lane, order = held_by(entry("holder"), *arriving), []
    while lane.holder is not None:
        decision = released(lane, lane.holder.run.run_id, at("12:30"))
        lane = decision.lane
        order += [decision.started.run.schedule_id] if decision.started else []
    assert order == ["early", "also-early", "late", "low"]


def test_what_waited_too_long_expires_and_never_starts_later() -> None:
    waiting = entry(policy=QUEUE, start_by=at("13:00"))
    lane = held_by(entry("s2"), waiting)
    assert next_wake(lane) == at("13:00")
    assert ends(tick(lane, at("12:59:59"))) == []
    expired = tick(lane, at("13:00"))
    assert ends(expired) == [(waiting.run.run_id, "expired", None)]
    assert lane.holder is not None
    freed = released(lane, lane.holder.run.run_id, at("13:05"))
    assert freed.started is None
    assert ends(freed) == [(waiting.run.run_id, "expired", None)]


def test_a_withdrawal_ends_what_waits_and_leaves_what_runs() -> None:
    lane = held_by(entry(), entry(scheduled_for=at("12:10"), policy=QUEUE), entry("s2", at("12:11"), QUEUE))
    decision = withdrawn(lane, "s1", at("12:12"), "schedule_paused", "Paused.")
    assert [reason for _, reason, _ in ends(decision)] == ["schedule_paused"]
    assert decision.lane.holder == lane.holder
    assert [waiting.run.schedule_id for waiting in decision.lane.waiting] == ["s2"]


def test_a_withdrawal_of_occurrences_spares_a_run_now() -> None:
    asked = entry(policy=QUEUE, origin=Origin.RUN_NOW, run_id="s1-now")
    lane = held_by(entry("s2"), asked, entry(scheduled_for=at("12:10"), policy=QUEUE))
    decision = withdrawn(lane, "s1", at("12:12"), "schedule_paused", "Paused.", only_occurrences=True)
    assert waiting_ids(decision.lane) == ["s1-now"]


def test_the_end_of_a_run_that_does_not_hold_the_lane_changes_nothing() -> None:
    lane = held_by(entry(), entry("s2", policy=QUEUE))
    assert released(lane, "somebody-else", NOON) == LaneDecision(lane=lane)


def test_a_granted_run_says_on_its_trail_that_it_waited_and_was_granted() -> None:
    lane = held_by(entry("s2"), entry(policy=QUEUE))
    assert lane.waiting[0].run.state is RunState.WAITING
    assert lane.holder is not None
    decision = released(lane, lane.holder.run.run_id, at("12:30"))
    assert [change.trail.kind for change in decision.changes] == ["lane_granted"]
    assert decision.started is not None
    assert decision.started.run.state is RunState.QUEUED


@pytest.mark.parametrize("policy", CollisionPolicy)
def test_a_request_that_comes_again_after_its_run_was_skipped_starts_nothing(policy: CollisionPolicy) -> None:
    again = entry(policy=policy)
    ended = withdrawn(held_by(entry("s2"), again), "s1", at("12:01"), "schedule_paused", "Paused.").lane
    assert ended.holder is not None
    free = released(ended, ended.holder.run.run_id, at("12:02")).lane
    assert arrive(free, again, at("12:03")) == LaneDecision(lane=free)
    assert not free.is_idle
    forgotten = tick(free, at("12:00", day=2)).lane
    assert forgotten.is_idle
    assert ends(arrive(forgotten, again, at("12:00", day=2))) == [(again.run.run_id, "expired", None)]


def test_a_lane_remembers_one_ended_run_of_each_schedule_however_many_it_skips() -> None:
    lane = held_by(entry("s2"))
    for minute in range(1, 50):
        lane = arrive(lane, entry(scheduled_for=at(f"12:{minute:02}")), at(f"12:{minute:02}")).lane
    assert [stone.schedule_id for stone in lane.tombstones] == ["s1"]


@pytest.mark.parametrize("policy", CollisionPolicy)
def test_a_busy_lane_stays_as_small_as_it_is_however_many_occurrences_it_meets(policy: CollisionPolicy) -> None:
    lane = held_by(entry("s2"))
    sizes, ended = [], 0
    for number in range(1, 3001):
        now = NOON + timedelta(minutes=5 * number)
        arriving = entry("s1", now, policy, start_by=now + timedelta(days=30))
        decision = arrive(lane, arriving, now)
        lane = decision.lane
        ended += sum(change.run.is_final for change in decision.changes)
        sizes.append(len(lane.model_dump_json()))
    assert ended + len(lane.waiting) == 3000
    assert max(sizes) < sizes[2] + 500
