"""A manual run as it is asked for, and as a lane knows it."""

from __future__ import annotations

from typing import Any

import pytest

from domain import manual_run
from domain.errors import Invalid
from domain.lane import Lane, LaneDecision, LaneEntry, arrive, dropped, released, withdrawn
from domain.manual_run import ManualRun
from domain.messages import LaneRequest
from domain.run import Origin, RunState
from tests.domain.builders import at, entry


def request(key: str = "k", *, workspace: str = "default", pipeline: str = "close", **asked: Any) -> LaneRequest:
    wanted = ManualRun(**asked)
    return manual_run.request(
        workspace,
        pipeline,
        wanted,
        payload=manual_run.payload(pipeline, wanted),
        target=f"pipeline:{pipeline}",
        key=key,
        by="somebody",
        heartbeat_seconds=30,
        now=at("12:00"),
    )


def waiting(key: str) -> LaneEntry:
    return request(key).entry


def held() -> Lane:
    return arrive(Lane(), entry("s1"), at("12:00")).lane


def test_it_is_recorded_for_nobody_s_schedule() -> None:
    asked = request()
    assert asked.recorded is not None
    run = asked.recorded.run
    assert (run.schedule_id, run.schedule_name, run.schedule_revision, run.scheduled_for) == (None, None, None, None)
    assert (run.origin, run.state, run.reference_time) == (Origin.MANUAL, RunState.QUEUED, at("12:00"))
    assert asked.recorded.trail.data == {"by": "somebody"}
    assert asked.entry.run.seq > asked.recorded.trail.seq
    assert not run.is_occurrence


def test_the_same_key_is_the_same_run_and_any_other_is_another() -> None:
    ids = [
        asked.entry.run.run_id
        for asked in (
            request(),
            request(),
            request("other"),
            request(workspace="acme"),
            request(pipeline="open"),
            request("b", pipeline="a"),
            request("ab", pipeline=""),
        )
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == len(ids) - 1


def test_its_payload_has_what_was_asked_for_and_nothing_else() -> None:
    assert request().entry.launch.payload == {"pipeline": "close", "version": "current"}
    asked = request(parameters={"n": 1}, groups=("a",), step="load", timezone="Asia/Tokyo").entry
    assert asked.launch.payload == {
        "pipeline": "close",
        "version": "current",
        "parameters": {"n": 1},
        "groups": ["a"],
        "step": "load",
    }
    assert asked.run.reference_zone == "Asia/Tokyo"


def test_a_zone_that_is_none_is_refused() -> None:
    with pytest.raises(Invalid):
        manual_run.check(ManualRun(timezone="Mars/Olympus"))


def test_manual_runs_wait_in_turn_beside_a_schedule_s_and_are_not_withdrawn_with_it() -> None:
    lane = arrive(held(), waiting("a"), at("12:01")).lane
    lane = arrive(lane, waiting("b"), at("12:02")).lane
    assert len(lane.waiting) == 2
    assert withdrawn(lane, "s1", at("12:03"), "schedule_paused", "Paused.").lane.waiting == lane.waiting
    assert lane.holder is not None
    next_one = released(lane, lane.holder.run.run_id, at("12:04")).started
    assert next_one is not None
    assert next_one.run.run_id == waiting("a").run.run_id


def test_each_that_was_dropped_is_remembered_so_that_its_request_starts_nothing_later() -> None:
    lane = held()
    for key in ("a", "b"):
        lane = arrive(lane, waiting(key), at("12:01")).lane
    for key in ("a", "b"):
        lane = dropped(lane, waiting(key).run.run_id, at("12:02"), "somebody").lane
    assert len(lane.tombstones) == 2
    for key in ("a", "b"):
        assert arrive(lane, waiting(key), at("12:03")) == LaneDecision(lane=lane)
