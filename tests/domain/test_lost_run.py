"""What is said of a run whose worker has gone silent."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain import frozen
from domain.lane import fence
from domain.lost_run import Ending, Evidence, conclude, doubt, late_truth, taken_over, unconfirmed
from domain.run import Advanced, Run, RunState, advance
from tests.domain.builders import at, run


def claimed(seq: int = 0) -> Run:
    waiting = run(seq=seq)
    return advance(
        advance(waiting, RunState.STARTING, at("12:01"), execution_id="e").run, RunState.RUNNING, at("12:01")
    ).run


def said(evidence: Evidence, *, announced: bool = False, attempt: Run | None = None) -> Advanced | None:
    return conclude(attempt or run(), evidence, announced=announced, cause="six missed", now=at("12:05"))


def ends(change: Advanced | None) -> tuple[RunState, str | None] | None:
    return None if change is None else (change.run.state, change.run.reason)


@pytest.mark.parametrize(
    ("evidence", "announced", "expected"),
    [
        (Evidence(claimed=None), False, None),
        (Evidence(claimed=None), True, (RunState.UNKNOWN, "execution_missing")),
        (Evidence(claimed=claimed()), False, (RunState.UNKNOWN, "start_unconfirmed")),
        (Evidence(claimed=claimed()), True, (RunState.UNKNOWN, "instance_lost")),
        (Evidence(claimed=claimed(), began=True), False, (RunState.UNKNOWN, "instance_lost")),
        (Evidence(claimed=claimed(), began=True, unreadable="torn"), True, (RunState.UNKNOWN, "outcome_unreadable")),
        (Evidence(claimed=claimed(), ending=Ending(state=RunState.SUCCEEDED)), False, (RunState.SUCCEEDED, None)),
        (
            Evidence(claimed=claimed(), ending=Ending(state=RunState.FAILED, reason="execution_timeout")),
            True,
            (RunState.FAILED, "execution_timeout"),
        ),
        (Evidence(claimed=claimed(), ending=Ending(state=RunState.ABORTED)), True, (RunState.ABORTED, None)),
        (
            Evidence(claimed=claimed(), ending=Ending(state=RunState.NOT_STARTED, reason="record_unwritable")),
            False,
            (RunState.NOT_STARTED, "record_unwritable"),
        ),
    ],
)
def test_only_what_is_proven(evidence: Evidence, announced: bool, expected: tuple[RunState, str | None] | None) -> None:
    attempt = evidence.claimed if announced and evidence.claimed else claimed() if announced else run()
    assert ends(said(evidence, announced=announced, attempt=attempt)) == expected


def test_what_the_claim_froze_stays_and_no_row_of_the_trail_is_written_twice() -> None:
    change = said(Evidence(claimed=claimed(seq=10_000)), attempt=run(seq=20_003))
    assert change is not None
    assert change.run.execution_id == "e"
    assert change.trail.seq == change.run.seq > 30_000
    assert change.trail.data == {"cause": "six missed"}


def test_a_late_truth_replaces_unknown_and_says_so() -> None:
    unknown = said(Evidence(claimed=claimed()), announced=True, attempt=claimed())
    assert unknown is not None
    late = late_truth(unknown.run, Ending(state=RunState.FAILED, reason="execution_failed"), at("13:00"))
    assert ends(late) == (RunState.FAILED, "execution_failed")
    assert late.trail.kind == "updated_after_unknown"
    assert not late.run.blocks


def frozen_as(run: Run, *, detached: bool = False, outlives_worker: bool = False) -> Run:
    prepared = frozen.frozen({}, "close", detached=detached, outlives_worker=outlives_worker)
    return run.model_copy(update={"prepared": prepared})


def test_a_detached_execution_goes_on_without_the_worker_that_claimed_it() -> None:
    detached = frozen_as(claimed(seq=10_000), detached=True)
    change = taken_over(run(seq=20_003), Evidence(claimed=detached), "six missed", at("12:05"))
    assert change is not None
    assert change.run.state is RunState.RUNNING
    assert change.trail.kind == "launch_taken_over"
    assert change.trail.seq == change.run.seq > 30_000


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(claimed=None),
        Evidence(claimed=claimed()),
        Evidence(claimed=frozen_as(claimed(), detached=True), ending=Ending(state=RunState.SUCCEEDED)),
    ],
    ids=["unclaimed", "in a slot", "ended"],
)
def test_nothing_else_does(evidence: Evidence) -> None:
    assert taken_over(run(), evidence, "six missed", at("12:05")) is None


def test_what_may_never_have_been_launched_is_not_missing_but_unconfirmed() -> None:
    missing = Ending(state=RunState.UNKNOWN, reason="execution_missing")
    assert unconfirmed(missing).reason == "start_unconfirmed"
    succeeded = Ending(state=RunState.SUCCEEDED)
    assert unconfirmed(succeeded) == succeeded


@pytest.mark.parametrize(
    ("reason", "marks", "expected"),
    [
        ("instance_lost", {}, fence(30)),
        ("execution_missing", {}, fence(30)),
        ("start_failed", {}, timedelta(0)),
        ("instance_lost", {"outlives_worker": True}, None),
        ("start_unconfirmed", {"detached": True}, None),
        ("execution_missing", {"detached": True}, timedelta(0)),
    ],
)
def test_how_long_a_lane_is_in_doubt(reason: str, marks: dict[str, bool], expected: timedelta | None) -> None:
    lost = advance(frozen_as(claimed(), **marks), RunState.UNKNOWN, at("12:05"), reason=reason).run
    assert doubt(lost, 30) == expected
