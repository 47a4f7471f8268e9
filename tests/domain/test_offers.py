"""What is open is offered to its lane again: a lane that somebody ended by hand has forgotten it."""

from __future__ import annotations

from datetime import timedelta

from domain import lane, schedule_lane
from domain.lane import Lane
from domain.run import OWNER_BLOCK, RunState
from domain.schedule_lane import OFFER_AGAIN
from tests.domain.builders import NOON, at, entry
from tests.domain.life import Life


def waiting() -> Life:
    life = Life(at("08:30"), cron="0 9 * * *").wake(at("09:00"))
    return life.waits_in_its_lane(life.only)


def test_what_waits_for_long_is_offered_again_and_then_not_before_the_same_time_has_passed() -> None:
    life = waiting()
    offer = schedule_lane.next_offer(life.state)
    assert offer == at("09:00") + OFFER_AGAIN
    life.wake(offer - timedelta(seconds=1))
    assert life.offered_again == []
    life.wake(offer)
    life.wake(offer + timedelta(minutes=1))
    assert [run.run_id for run in life.offered_again] == [life.only.run_id]
    assert schedule_lane.next_offer(life.state) == offer + OFFER_AGAIN


def test_an_offer_carries_the_run_as_it_was_last_heard_of_and_numbers_that_nobody_has_used() -> None:
    life = waiting().wake(at("09:00") + OFFER_AGAIN).wake(at("09:00") + 2 * OFFER_AGAIN)
    first, second = life.offered_again
    assert first.state is second.state is RunState.WAITING
    assert first.seq % OWNER_BLOCK == second.seq % OWNER_BLOCK == 0
    assert second.seq > first.seq > life.only.seq


def test_what_runs_is_worth_no_timer_and_is_offered_again_when_the_schedule_wakes_anyway() -> None:
    life = Life(at("08:30"), cron="0 9,12 * * *").wake(at("09:00"))
    assert schedule_lane.next_offer(life.state) is None
    life.wake(at("12:00"))
    assert [run.scheduled_for for run in life.offered_again] == [at("09:00")]


def test_a_replan_offers_all_at_once() -> None:
    life = waiting().replan()
    assert [run.run_id for run in life.offered_again] == [life.only.run_id]


def test_what_waits_at_the_gate_was_never_sent_and_is_not_offered() -> None:
    life = Life(at("08:30"), cron="0 9,10 * * *", collision_policy="queue_latest").wake(at("09:00"))
    life.edit(target="pipeline:other").wake(at("10:00"))
    assert [run.scheduled_for for run in life.requested] == [at("09:00")]
    life.wake(at("12:00"))
    assert {run.scheduled_for for run in life.offered_again} == {at("09:00")}


def test_a_run_that_has_begun_holds_the_lane_that_is_new() -> None:
    decision = lane.resumed(Lane(), entry("s1"))
    assert decision.lane.holder == entry("s1")
    assert (decision.started, decision.changes) == (None, ())


def test_a_run_that_has_begun_displaces_nobody() -> None:
    held = lane.arrive(Lane(), entry("s1"), NOON).lane
    assert lane.resumed(held, entry("s2")).lane == held
