"""Each check finds what it is for, on evidence in which one thing is wrong; and finds nothing where all is right."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos import cron
from tests.chaos.checker import CHECKS, trace, violations
from tests.chaos.evidence import Ask, Evidence, Line, Said, TrailRow
from tests.chaos.samples import HANDED, MINUTE, NOON, but, calm, iso, life, lines, run, without

CHECKER = ("evidence", "cron", "story", "checker", "check_*", "collect")
PRODUCT = {
    "domain",
    "workflows",
    "activities",
    "executors",
    "evidence",
    "readmodel",
    "worker",
    "api",
    "cli",
    "embedded",
}


def test_nothing_is_found_where_all_is_right() -> None:
    assert violations(calm()) == []


def test_the_checker_shares_no_code_with_what_it_checks() -> None:
    here = Path(__file__).parent
    for path in [path for name in CHECKER for path in here.glob(f"{name}.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & PRODUCT, path


def lost_occurrence() -> Evidence:
    return without(calm(), "parent-1")


def doubled_occurrence() -> Evidence:
    row = calm().run["parent-1"]
    summary = replace(
        row, run_id="parent-1-missed", missed=(NOON + MINUTE, NOON + MINUTE, 1), state="skipped", scheduled_for=None
    )
    return replace(calm(), runs=(*calm().runs, summary))


def fired_while_paused() -> Evidence:
    paused, told = life("parent"), calm().lives[0].said[0]
    said = (told, Said(NOON + 1.5 * MINUTE, "pause", {}))
    return replace(calm(), lives=(replace(paused, said=said), calm().lives[1]))


def never_due() -> Evidence:
    return but(calm(), "parent-1", scheduled_for=NOON + 90)


def miscounted_summary() -> Evidence:
    due = (NOON + MINUTE, NOON + 2 * MINUTE)
    gone = without(without(calm(), "parent-1"), "parent-2")
    row = replace(run("parent", due[0]), state="skipped", reason="missed", missed=(*due, 3), scheduled_for=None)
    return replace(gone, runs=(*gone.runs, row))


def too_late() -> Evidence:
    return but(calm(), "parent-1", recorded_at=NOON + 20 * MINUTE)


def forgotten_ask() -> Evidence:
    return replace(calm(), asks=(Ask(NOON, "run_now", "parent-now-1", "key"),))


def double_start() -> Evidence:
    again = [replace(line, at=line.at + 0.2) for line in lines(calm().run["parent-1"]) if line.what == "began"]
    return replace(calm(), ledger=(*calm().ledger, *again))


def start_without_claim() -> Evidence:
    return replace(calm(), claims=tuple(claim for claim in calm().claims if claim.run_id != "parent-1"))


def dishonest_end() -> Evidence:
    kept = tuple(line for line in calm().ledger if (line.run, line.what) != ("parent-1", "ended"))
    return replace(calm(), ledger=kept)


def ran_though_refused() -> Evidence:
    return but(calm(), "parent-1", state="not_started", reason="capacity")


def early_start() -> Evidence:
    moved = tuple(replace(line, at=NOON + 50) if line.run == "parent-1" else line for line in calm().ledger)
    return replace(calm(), ledger=moved)


def skipped_transition() -> Evidence:
    trail = tuple(row for row in calm().run["child-1"].trail if row.state != "queued")
    return but(calm(), "child-1", trail=trail)


def missing_number() -> Evidence:
    trail = calm().run["parent-1"].trail
    return but(calm(), "parent-1", trail=(*trail[:-1], replace(trail[-1], seq=HANDED + 4)), seq=HANDED + 4)


def lost_pending() -> Evidence:
    trail = (
        TrailRow(1, NOON + MINUTE, "recorded", "queued", None),
        TrailRow(2, NOON + MINUTE, "lane_waiting", "waiting", "lane"),
    )
    gone = without(calm(), "parent-1")
    row = replace(run("parent", NOON + MINUTE), state="waiting", reason="lane", trail=trail, seq=2, execution_id=None)
    return replace(gone, runs=(*gone.runs, replace(row, run_folder=None, started_at=None, ended_at=None)))


def wrong_parent_date() -> Evidence:
    wait = {"schedule_id": "parent", "occurrence": iso(NOON - 86_400)}
    return but(calm(), "child-1", waits_for=(wait,))


def released_before_its_parents_end() -> Evidence:
    trail = calm().run["child-1"].trail
    return but(calm(), "child-1", trail=(trail[0], replace(trail[1], at=NOON + MINUTE + 1), *trail[2:]))


def absent_though_there() -> Evidence:
    trail = (calm().run["child-1"].trail[0], TrailRow(2, NOON + MINUTE + 1, "finished", "skipped", "parent_absent"))
    changes = {"trail": trail, "seq": 2, "state": "skipped", "reason": "parent_absent", "execution_id": None}
    return but(without_work(calm(), "child-1"), "child-1", run_folder=None, started_at=None, **changes)


def without_work(evidence: Evidence, run_id: str) -> Evidence:
    """The run's row stays, and it never began."""
    return replace(without(evidence, run_id), runs=evidence.runs)


def _on_one_lane(evidence: Evidence) -> Evidence:
    """The dependent's runs are of the parent's pipeline."""
    return replace(
        but(but(evidence, "child-1", target="pipeline:parent"), "child-2", target="pipeline:parent"),
        folders=tuple(
            replace(each, pipeline="parent", name=f"iteration-1{each.name[10:]}") if each.pipeline == "child" else each
            for each in evidence.folders
        ),
    )


def early_lane_release() -> Evidence:
    """A manual run begins in the midst of a scheduled one."""
    row = run("parent", NOON + MINUTE + 1)
    manual = replace(
        row, run_id="manual-1", schedule_id=None, revision=None, origin="manual", scheduled_for=None, execution_id="m"
    )
    told = tuple(replace(line, run="manual-1", schedule=None, execution="m") for line in lines(row))
    return replace(calm(), runs=(*calm().runs, manual), ledger=(*calm().ledger, *told))


def claimed_while_in_doubt() -> Evidence:
    trail = calm().run["parent-1"].trail
    lost = (*trail[:-1], TrailRow(2 * HANDED + 1, NOON + 2 * MINUTE - 5, "finished", "unknown", "instance_lost"))
    return but(calm(), "parent-1", trail=lost, state="unknown", reason="instance_lost", seq=lost[-1].seq)


def two_at_once() -> Evidence:
    """A run of a parallel schedule that lasts until after the next one of its own has begun."""
    trail = calm().run["parent-1"].trail
    return but(calm(), "parent-1", trail=(*trail[:-1], replace(trail[-1], at=NOON + 2 * MINUTE + 3)))


def stale_row() -> Evidence:
    return replace(
        calm(), schedules={**calm().schedules, "parent": {**calm().schedules["parent"], "condition": "active"}}
    )


def two_workflows() -> Evidence:
    return replace(calm(), workflows=(*calm().workflows, calm().workflows[0]))


def failed_task() -> Evidence:
    first, *others = calm().workflows
    return replace(calm(), workflows=(replace(first, failures=("NON_DETERMINISTIC_ERROR",)), *others))


def foreign_folder() -> Evidence:
    first, *others = calm().folders
    return replace(calm(), folders=(replace(first, marker="child-2"), *others))


def contradicting_folder() -> Evidence:
    first, *others = calm().folders
    return replace(calm(), folders=(replace(first, metadata={**(first.metadata or {}), "status": "failed"}), *others))


def granted_too_late() -> Evidence:
    trail = calm().run["parent-1"].trail
    waited = (
        trail[0],
        TrailRow(2, NOON + MINUTE, "lane_waiting", "waiting", "lane"),
        TrailRow(3, NOON + 3 * 86_400, "lane_granted", "queued", None),
    )
    return but(calm(), "parent-1", trail=(*waited, *trail[1:]))


WRONG: list[tuple[Callable[[], Evidence], str]] = [
    (lost_occurrence, "due_once"),
    (doubled_occurrence, "due_once"),
    (fired_while_paused, "due_once"),
    (never_due, "due_once"),
    (miscounted_summary, "summaries_counted"),
    (too_late, "lateness_kept"),
    (forgotten_ask, "asks_kept"),
    (double_start, "executed_once"),
    (start_without_claim, "executed_once"),
    (dishonest_end, "ends_honest"),
    (ran_though_refused, "ends_honest"),
    (early_start, "not_before_due"),
    (granted_too_late, "deadlines_kept"),
    (skipped_transition, "trails_legal"),
    (missing_number, "trails_numbered"),
    (lost_pending, "all_ended"),
    (wrong_parent_date, "parents_first"),
    (released_before_its_parents_end, "parents_first"),
    (absent_though_there, "parents_first"),
    (early_lane_release, "lanes_exclusive"),
    (claimed_while_in_doubt, "lanes_exclusive"),
    (two_at_once, "one_active"),
    (stale_row, "schedules_mirrored"),
    (two_workflows, "runs_mirrored"),
    (failed_task, "tasks_sound"),
    (foreign_folder, "folders_own"),
    (contradicting_folder, "folders_own"),
]


@pytest.mark.parametrize(("wrong", "check"), WRONG, ids=[wrong.__name__ for wrong, _ in WRONG])
def test_what_is_wrong_is_found(wrong: Callable[[], Evidence], check: str) -> None:
    evidence = wrong()
    found = violations(evidence)
    assert check in {violation.check for violation in found}
    assert all(violation.about in trace(evidence, violation) for violation in found)


def test_a_halted_worker_s_steps_are_covered_until_the_fence() -> None:
    """They go on while the worker stands still, which it can't prevent; the lane goes on after the fence."""
    halted = replace(calm(), halts=(("worker-1", NOON + MINUTE + 2, NOON + 2 * MINUTE + 30),))
    trail = calm().run["parent-1"].trail
    lost = (*trail[:-1], TrailRow(2 * HANDED + 1, NOON + MINUTE + 15, "finished", "unknown", "instance_lost"))
    evidence = but(halted, "parent-1", trail=lost, state="unknown", reason="instance_lost", seq=lost[-1].seq)
    long = Line(NOON + 2 * MINUTE + 20, "ended", "parent-1", "execution-parent-1", "parent", "step-0", 7)
    evidence = replace(evidence, ledger=(*evidence.ledger, long))
    names = {violation.check for violation in violations(evidence)}
    assert not names & {"lanes_exclusive", "one_active"}
    awake = {violation.check for violation in violations(replace(evidence, halts=()))}
    assert {"lanes_exclusive", "one_active"} <= awake


def test_what_was_due_as_a_pause_came_is_dropped() -> None:
    """Nobody had dealt with it yet: the first task after it is the one that pauses."""
    first = calm().lives[0]
    said = (first.said[0], Said(NOON + MINUTE + 3, "pause", {}))
    paused = replace(first, said=said, tasks=(NOON, NOON + MINUTE + 3))
    gone = without(without(calm(), "parent-1"), "parent-2")
    checked = replace(gone, lives=(paused, gone.lives[1]))
    assert "due_once" not in {violation.check for violation in violations(checked)}
    earlier = replace(paused, tasks=(NOON, NOON + MINUTE + 1, NOON + MINUTE + 3))
    found = violations(replace(gone, lives=(earlier, gone.lives[1])))
    assert "due_once" in {violation.check for violation in found}


def test_patterns_by_trying_every_minute() -> None:
    quarter = [NOON + 15 * MINUTE * step for step in range(1, 5)]
    assert cron.between("*/15 * * * *", "UTC", NOON, NOON + 3600) == quarter
    assert cron.between("7,21-23 * * * *", "UTC", NOON, NOON + 3600) == [NOON + m * MINUTE for m in (7, 21, 22, 23)]
    assert cron.between("30 17 * * *", "Asia/Kolkata", NOON - 60, NOON) == [NOON]


def test_every_check_is_shown_to_find_something() -> None:
    shown = {check for _, check in WRONG}
    assert {check.__name__ for check in CHECKS} - shown == {"dependency_deadlines"}
