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


def test_a_note_changes_no_state() -> None:
    noted = note(run(), "capacity_retried", NOON, "No slot.")
    assert noted.run.state is RunState.QUEUED
    assert noted.trail.kind == "capacity_retried"
    assert noted.run.seq == run().seq + 1


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
