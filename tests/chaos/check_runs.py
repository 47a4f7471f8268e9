"""Each run for itself: executed at most once, in its time, with an honest end and a legal trail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.evidence import Evidence, RunRow, Violation, clock
from tests.chaos.story import story

ENTRY = {"queued", "waiting", "skipped"}
NEXT: dict[str, set[str]] = {
    "waiting": {"waiting", "queued", "cancelled", "skipped"},
    "queued": {"waiting", "starting", "cancelled", "not_started", "skipped", "unknown"},
    "starting": {"running", "cancelled", "aborted", "not_started", "unknown"},
    "running": {"succeeded", "failed", "cancelled", "aborted", "unknown"},
    "unknown": {"succeeded", "failed", "cancelled", "aborted"},
    "succeeded": set(),
    "failed": set(),
    "cancelled": set(),
    "aborted": set(),
    "not_started": set(),
    "skipped": set(),
}
"""Written from section 6.1: a run is held back, admitted, claimed, running, then final; `unknown` has a late truth."""

OPEN = {"waiting", "queued", "starting", "running"}
BLOCK = 10_000
"""Each owner of a run numbers its rows from a multiple of this on."""
CLOCKS = 0.05
"""Seconds that two processes' clocks may seem apart."""
NEVER_RAN = {"not_started", "skipped"}


def executed_once(evidence: Evidence) -> Iterator[Violation]:
    """By the ledger: each step of a run began at most once, under the one execution that was claimed."""
    claimed = {claim.run_id: claim for claim in evidence.claims if claim.status != "void"}
    for run_id, lines in evidence.lines_of.items():
        begun = Counter(line.step for line in lines if line.what == "began")
        for step, times in begun.items():
            if times > 1:
                yield Violation("executed_once", run_id, f"step {step} began {times} times", (run_id,))
        if run_id not in claimed:
            yield Violation("executed_once", run_id, "it ran, and nobody had claimed it", (run_id,))
        elif {line.execution for line in lines} != {claimed[run_id].execution_id}:
            yield Violation("executed_once", run_id, "it ran under another execution's id", (run_id,))


def ends_honest(evidence: Evidence) -> Iterator[Violation]:
    """How a run is said to have ended is what its steps did."""
    for run in evidence.runs:
        lines = evidence.lines_of.get(run.run_id, [])
        what = Counter(line.what for line in lines)
        steps = evidence.steps.get((run.workspace, run.target.removeprefix("pipeline:")))
        problem = None
        if run.state in NEVER_RAN and lines:
            problem = "it never started, and its steps ran"
        elif run.state == "succeeded" and (what["began"], what["ended"]) != (steps, steps):
            problem = f"{what['began']} of its {steps} steps began and {what['ended']} ended"
        elif run.reason == "execution_failed" and not what["failed"]:
            problem = "none of its steps failed"
        if problem:
            yield Violation("ends_honest", run.run_id, f"{run.state}, and {problem}", (run.run_id,))


def not_before_due(evidence: Evidence) -> Iterator[Violation]:
    """No step begins before its run's occurrence or its RUNNING record."""
    for run in evidence.runs:
        began = next((line.at for line in evidence.lines_of.get(run.run_id, []) if line.what == "began"), None)
        if began is None:
            continue
        for name, bound in (("occurrence", run.scheduled_for), ("RUNNING record", run.started_at)):
            if bound is not None and began < bound - CLOCKS:
                words = f"began at {clock(began)}, before its {name} at {clock(bound)}"
                yield Violation("not_before_due", run.run_id, words, (run.run_id,))


def deadlines_kept(evidence: Evidence) -> Iterator[Violation]:
    """What waited for its lane is not let go after it was no longer worth starting, nor given up before."""
    told = {life.schedule_id: story(life) for life in evidence.lives}
    for run in evidence.runs:
        version = told[run.schedule_id].version(run.revision) if run.schedule_id in told else None
        if version is None:
            continue
        reference = run.scheduled_for if run.scheduled_for is not None else run.recorded_at
        until = reference + 60 * version.body.get("max_start_delay_minutes", 1440)
        granted = next((row.at for row in reversed(run.trail) if row.kind == "lane_granted"), None)
        if granted is not None and granted > until + CLOCKS:
            words = f"was let go at {clock(granted)}, {clock(until)} was the latest"
            yield Violation("deadlines_kept", run.run_id, words, (run.run_id,))
        if run.reason == "expired" and run.ended_at is not None and run.ended_at < until - CLOCKS:
            words = f"expired at {clock(run.ended_at)}, before {clock(until)}"
            yield Violation("deadlines_kept", run.run_id, words, (run.run_id,))


def trails_legal(evidence: Evidence) -> Iterator[Violation]:
    """From state to state as the table has it, from a first row to a final one, which is the run's own state."""
    for run in evidence.runs:
        problem = _trail_problem(run)
        if problem:
            yield Violation("trails_legal", run.run_id, problem, (run.run_id,))


def _trail_problem(run: RunRow) -> str | None:
    if not run.trail:
        return "it has no trail"
    first, last = run.trail[0], run.trail[-1]
    if first.kind != "recorded" or first.state not in ENTRY:
        return f"its first row is {first.kind} {first.state}"
    for before, after in zip(run.trail, run.trail[1:], strict=False):
        remark = before.state == after.state and after.state in OPEN
        if not remark and after.state not in NEXT[before.state]:
            return f"{before.state} (row {before.seq}) became {after.state} (row {after.seq})"
    if (last.state, last.seq) != (run.state, run.seq):
        return f"its last row is {last.seq} {last.state}, and the run is {run.seq} {run.state}"
    return None


def trails_numbered(evidence: Evidence) -> Iterator[Violation]:
    """Within an owner's block no number is left out."""
    for run in evidence.runs:
        present = {row.seq for row in run.trail}
        gap = next((seq for seq in present if seq % BLOCK > 1 and seq - 1 not in present), None)
        if gap is not None:
            yield Violation("trails_numbered", run.run_id, f"row {gap} is there and {gap - 1} is not", (run.run_id,))


def all_ended(evidence: Evidence) -> Iterator[Violation]:
    """Once all is quiet nothing is open."""
    for run in evidence.runs:
        if run.state in OPEN:
            yield Violation("all_ended", run.run_id, f"is still {run.state} ({run.reason})", (run.run_id,))
