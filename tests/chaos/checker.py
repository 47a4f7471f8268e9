"""All checks over one collected value, and a trace of what each violation is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.chaos import check_lanes, check_mirror, check_occurrences, check_parents, check_runs
from tests.chaos.evidence import Evidence, Violation, clock

CHECKS: tuple[Callable[[Evidence], Iterator[Violation]], ...] = (
    check_occurrences.due_once,
    check_occurrences.summaries_counted,
    check_occurrences.lateness_kept,
    check_occurrences.asks_kept,
    check_runs.executed_once,
    check_runs.ends_honest,
    check_runs.not_before_due,
    check_runs.deadlines_kept,
    check_runs.trails_legal,
    check_runs.trails_numbered,
    check_runs.all_ended,
    check_parents.parents_first,
    check_parents.dependency_deadlines,
    check_lanes.lanes_exclusive,
    check_lanes.one_active,
    check_mirror.schedules_mirrored,
    check_mirror.runs_mirrored,
    check_mirror.tasks_sound,
    check_mirror.folders_own,
)


def violations(evidence: Evidence) -> list[Violation]:
    return [violation for check in CHECKS for violation in check(evidence)]


def trace(evidence: Evidence, violation: Violation) -> str:
    """The violation and, of each run in it, row, trail and ledger lines."""
    lines = [f"{violation.check}: {violation.about}: {violation.words}"]
    for run_id in violation.runs[:3]:
        run = evidence.run.get(run_id)
        if run is not None:
            lines.append(
                f"  {run_id} {run.origin} {run.state}/{run.reason} due {clock(run.scheduled_for)} on {run.target} "
                f"recorded {clock(run.recorded_at)} ended {clock(run.ended_at)} folder {run.run_folder}"
            )
            lines += [f"    {row.seq:>6} {clock(row.at)} {row.kind} {row.state}/{row.reason}" for row in run.trail]
        told = [line for line in evidence.lines_of.get(run_id, []) if line.what != "beat"]
        lines += [f"    ledger {clock(line.at)} {line.what} step {line.step} pid {line.pid}" for line in told]
    return "\n".join(lines)
