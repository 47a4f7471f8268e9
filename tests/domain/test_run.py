"""The table of run states, and the one door through which a run changes."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from domain.run import (
    BLOCKING_REFUSALS,
    ENTRY_STATES,
    FINAL_STATES,
    OPEN_STATES,
    REASONS,
    TRANSITIONS,
    IllegalTransition,
    RunState,
    advance,
    hand_over,
    note,
    record,
    seize,
)
from tests.domain.builders import NOON, at, run

ALLOWED = [(state, to) for state, nexts in TRANSITIONS.items() for to in sorted(nexts)]
REFUSED = [pair for pair in product(RunState, RunState) if pair not in ALLOWED]


@pytest.mark.parametrize(("state", "to"), ALLOWED)
def test_a_legal_change_moves_the_run_and_says_so_on_the_trail(state: RunState, to: RunState) -> None:
    before = run(state=state)
    change = advance(before, to, at("12:01"), reason="because", message="In words.", data={"n": 1})
    assert change.run.state is to
    assert change.run.changed_at == at("12:01")
    assert (change.trail.seq, change.trail.state, change.trail.reason) == (change.run.seq, to, "because")
    assert change.run.seq > before.seq
    assert (change.run.ended_at == at("12:01")) is (to in FINAL_STATES)
    assert (change.run.started_at == at("12:01")) is (to is RunState.RUNNING)


@pytest.mark.parametrize(("state", "to"), REFUSED)
def test_every_other_change_is_refused(state: RunState, to: RunState) -> None:
    with pytest.raises(IllegalTransition):
        advance(run(state=state), to, NOON)


@pytest.mark.parametrize("state", RunState)
def test_a_run_is_recorded_only_in_a_state_that_claims_nothing(state: RunState) -> None:
    if state in ENTRY_STATES:
        assert record(run(state=state)).trail.kind == "recorded"
    else:
        with pytest.raises(IllegalTransition):
            record(run(state=state))


def test_every_open_state_can_reach_an_end_and_no_end_but_unknown_can_be_left() -> None:
    for state in OPEN_STATES:
        reached, frontier = {state}, [state]
        while frontier:
            frontier = [to for s in frontier for to in TRANSITIONS[s] if to not in reached]
            reached.update(frontier)
        assert reached & FINAL_STATES
    assert {state for state in FINAL_STATES if TRANSITIONS[state]} == {RunState.UNKNOWN}


def test_nothing_runs_without_having_been_claimed() -> None:
    assert {state for state, nexts in TRANSITIONS.items() if RunState.RUNNING in nexts} == {RunState.STARTING}
    assert {state for state, nexts in TRANSITIONS.items() if RunState.STARTING in nexts} == {RunState.QUEUED}
    assert RunState.NOT_STARTED not in TRANSITIONS[RunState.RUNNING]


@pytest.mark.parametrize("truth", sorted(TRANSITIONS[RunState.UNKNOWN]))
def test_a_late_truth_replaces_unknown_and_is_marked_as_such(truth: RunState) -> None:
    assert advance(run(state=RunState.UNKNOWN), truth, NOON).trail.kind == "updated_after_unknown"


@pytest.mark.parametrize("state", RunState)
def test_a_note_changes_nothing_but_the_number_and_the_time(state: RunState) -> None:
    before = run(state=state, reason="because", message="In words.")
    noted = note(before, "capacity_retried", at("12:01"), "No slot.", data={"n": 1})
    assert noted.run == before.model_copy(update={"seq": before.seq + 1, "changed_at": at("12:01")})
    row = noted.trail
    assert (row.kind, row.state, row.reason, row.message) == ("capacity_retried", state, "because", "No slot.")
    assert (row.seq, row.at, row.data) == (noted.run.seq, at("12:01"), {"n": 1})


@pytest.mark.parametrize("state", RunState)
def test_a_hand_over_changes_nothing_but_the_number(state: RunState) -> None:
    before = run(state=state, reason="because")
    for after in (hand_over(before), seize(before)):
        assert after.seq > before.seq
        assert after.model_copy(update={"seq": before.seq}) == before


ARRIVALS = [(a, to, reason) for a, to in ALLOWED if to in FINAL_STATES for reason in REASONS.get(to, (None,))]


@pytest.mark.parametrize(("state", "to", "reason"), ARRIVALS)
def test_every_reason_arrives_from_every_state_that_may_end_so(state: RunState, to: RunState, reason: str) -> None:
    ended = advance(run(state=state, reason="before", message="Before."), to, at("12:01"), reason=reason)
    assert (ended.run.state, ended.run.reason, ended.run.message) == (to, reason, None)
    assert (ended.trail.state, ended.trail.reason) == (to, reason)
    assert ended.run.is_final
    assert ended.run.blocks is (to is RunState.UNKNOWN or (to is RunState.NOT_STARTED and reason in BLOCKING_REFUSALS))


def test_the_reasons_are_these() -> None:
    ends = {state.value: set(REASONS.get(state, ())) for state in FINAL_STATES}
    assert ends == {
        "succeeded": set(),
        "failed": {"execution_failed", "execution_timeout"},
        "cancelled": {"cancelled"},
        "aborted": {"shutdown"},
        "unknown": {
            *("instance_lost", "start_unconfirmed", "start_failed", "execution_missing"),
            "outcome_unreadable",
        },
        "not_started": {
            *("capacity", "record_unwritable", "folder_unwritable", "workspace_inactive"),
            *("version_changed", "snapshot_unresolved"),
            *BLOCKING_REFUSALS,
        },
        "skipped": {
            *("missed", "overlap", "busy", "superseded", "coalesced", "expired", "dependency_deadline"),
            *("parent_failed", "parent_absent", "schedule_paused", "schedule_blocked", "schedule_edited"),
            *("schedule_deleted", "operator"),
        },
    }
    assert {
        *("executor_unavailable", "pointer_null", "target_not_found", "payload_invalid", "parameters_invalid"),
        *("authority_refused", "start_refused"),
    } == BLOCKING_REFUSALS


def test_owners_never_share_a_number_on_the_trail() -> None:
    kept = hand_over(run())
    lost = advance(kept, RunState.STARTING, NOON).run
    assert hand_over(kept).seq > advance(lost, RunState.RUNNING, NOON).run.seq
    far = run()
    for _ in range(1000):
        far = hand_over(far)
    assert seize(run()).seq > far.seq


@pytest.mark.parametrize(("state", "reason"), [(s, r) for s, reasons in REASONS.items() for r in reasons])
def test_what_blocks(state: RunState, reason: str) -> None:
    blocks = state is RunState.UNKNOWN or (state is RunState.NOT_STARTED and reason in BLOCKING_REFUSALS)
    assert run(state=state, reason=reason).blocks is blocks


def test_only_refusals_that_exist_can_block() -> None:
    assert set(REASONS[RunState.NOT_STARTED]) >= BLOCKING_REFUSALS


def test_the_chart_in_the_docs_is_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text()
    chart = text.split("<!-- run states -->")[1].split("```")[1]
    drawn = set(re.findall(r"(\S+) --> (\S+)", chart))
    entries = {("[*]", str(state)) for state in ENTRY_STATES}
    ends = {(str(state), "[*]") for state in FINAL_STATES if state is not RunState.UNKNOWN}
    assert drawn == {(str(a), str(b)) for a, b in ALLOWED} | entries | ends
