"""No dependent starts before its parents' ends, and each waits for the right occurrence of each parent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.chaos.cron import local_date
from tests.chaos.evidence import Evidence, RunRow, Violation, clock, seconds
from tests.chaos.story import Story, Version, story

OPEN = {"waiting", "queued", "starting", "running"}
CLOCKS = 0.05
MOST_LINKS = 10_000


def parents_first(evidence: Evidence) -> Iterator[Violation]:
    told = {life.schedule_id: story(life) for life in evidence.lives}
    for run in evidence.runs:
        version = told[run.schedule_id].version(run.revision) if run.schedule_id in told else None
        if version is None or not version.parents or run.origin not in ("cron", "catch_up") or run.missed:
            continue
        released = next((row.at for row in run.trail if row.kind == "released"), None)
        if released is not None:
            for parent in version.parents:
                yield from _released_rightly(evidence, told, run, version, parent, released)
        elif any(row.state in ("queued", "starting", "running") for row in run.trail):
            yield Violation("parents_first", run.run_id, "started without having been released", (run.run_id,))
        elif run.reason == "parent_absent":
            yield from _absent_rightly(evidence, told, run, version)


def _released_rightly(
    evidence: Evidence, told: dict[str, Story], run: RunRow, version: Version, parent: str, released: float
) -> Iterator[Violation]:
    wait = next((each for each in run.waits_for if each["schedule_id"] == parent), None)
    matched = _instant(wait)
    if matched is None or run.scheduled_for is None:
        yield Violation("parents_first", run.run_id, f"released without an occurrence of {parent}", (run.run_id,))
        return
    right = _match(evidence, told, run, version, parent)
    if matched != right:
        words = f"waited for {parent} of {clock(matched)}, right is {clock(right)}"
        yield Violation("parents_first", run.run_id, words, (run.run_id,))
        return
    end = _outcome(evidence, parent, matched)
    if end is None:
        words = f"nothing is recorded of {parent} at {clock(matched)}"
        yield Violation("parents_first", run.run_id, words, (run.run_id,))
        return
    accepted = _accepted_at(end, version.body.get("after_terminal_status", "completed"))
    delay = 60 * version.body.get("after_delay_minutes", 0)
    if accepted is None or released < accepted + delay - CLOCKS:
        words = f"released at {clock(released)}; {end.run_id} ended {end.state} at {clock(end.ended_at)}"
        yield Violation("parents_first", run.run_id, f"{words}, and the delay is {delay} s", (run.run_id, end.run_id))
    yield from _worked_after(evidence, run, end, delay)


def _worked_after(evidence: Evidence, run: RunRow, parent: RunRow, delay: float) -> Iterator[Violation]:
    """By the ledger."""
    began = next((line.at for line in evidence.lines_of.get(run.run_id, []) if line.what == "began"), None)
    ends = [line.at for line in evidence.lines_of.get(parent.run_id, []) if line.what in ("ended", "failed")]
    if began is not None and ends and began < ends[-1] + delay - CLOCKS:
        words = f"its step began at {clock(began)}, that of {parent.run_id} ended at {clock(ends[-1])}"
        yield Violation("parents_first", run.run_id, words, (run.run_id, parent.run_id))


def _absent_rightly(evidence: Evidence, told: dict[str, Story], run: RunRow, version: Version) -> Iterator[Violation]:
    """There must be a parent that has nothing on the date."""
    if run.scheduled_for is None:
        return
    found = {parent: _on_date(evidence, told, run, version, parent) for parent in version.parents}
    before = {parent: [at for at in ats if at <= run.scheduled_for] for parent, ats in found.items()}
    if all(before.values()):
        words = "said to have no parent's occurrence, and each has one on that date"
        yield Violation("parents_first", run.run_id, words, (run.run_id,))


def _match(evidence: Evidence, told: dict[str, Story], run: RunRow, version: Version, parent: str) -> float | None:
    """Driven by one parent, the very occurrence; else the parent's last of the date at or before, else its first."""
    assert run.scheduled_for is not None
    if not version.body.get("cron") and len(version.parents) == 1:
        return run.scheduled_for
    known = _on_date(evidence, told, run, version, parent)
    if not version.body.get("cron"):
        return known[-1] if known else None
    before = [at for at in known if at <= run.scheduled_for]
    return before[-1] if before else next(iter(known), None)


def _on_date(evidence: Evidence, told: dict[str, Story], run: RunRow, version: Version, parent: str) -> list[float]:
    """The parent's occurrences of which something is recorded, on the run's local date."""
    assert run.scheduled_for is not None
    day = local_date(version.body["timezone"], run.scheduled_for)
    instants = set()
    for row in evidence.runs_of.get(parent, []):
        if row.scheduled_for is not None and row.origin in ("cron", "catch_up"):
            instants.add((row.scheduled_for, row.record["reference_zone"]))
        if row.missed is not None:
            due = told[parent].occurrences(row.missed[1]) if parent in told else []
            instants |= {(at, row.record["reference_zone"]) for at in due if row.missed[0] <= at <= row.missed[1]}
    return sorted(at for at, zone in instants if local_date(zone, at) == day)


def _outcome(evidence: Evidence, parent: str, at: float) -> RunRow | None:
    """The run that stands for the occurrence."""
    for row in evidence.runs_of.get(parent, []):
        covers = row.missed is not None and row.missed[0] <= at <= row.missed[1]
        if (row.scheduled_for == at and row.origin in ("cron", "catch_up")) or covers:
            for _ in range(MOST_LINKS):
                if row.stands_in is None:
                    return row
                row = evidence.run[row.stands_in]
    return None


def _accepted_at(end: RunRow, terminal: str) -> float | None:
    """When the parent came to an end that releases; None where it has not."""
    for row in end.trail:
        if row.state == "succeeded" or (terminal == "any_terminal" and row.state not in {*OPEN, "unknown"}):
            return row.at
    return None


def _instant(wait: dict[str, Any] | None) -> float | None:
    return seconds(wait["occurrence"]) if wait else None


def dependency_deadlines(evidence: Evidence) -> Iterator[Violation]:
    """Nothing is released after its dependency deadline, nor given up before it."""
    told = {life.schedule_id: story(life) for life in evidence.lives}
    for run in evidence.runs:
        version = told[run.schedule_id].version(run.revision) if run.schedule_id in told else None
        deadline = version.body.get("dependency_deadline") if version else None
        if version is None or not deadline or run.scheduled_for is None or version.body["timezone"] != "UTC":
            continue
        hours, minutes = deadline.split(":")
        day = run.scheduled_for - run.scheduled_for % 86_400
        until = day + int(hours) * 3600 + int(minutes) * 60
        released = next((row.at for row in run.trail if row.kind == "released"), None)
        if released is not None and released > until + CLOCKS:
            words = f"released at {clock(released)}, {clock(until)} was its deadline"
            yield Violation("dependency_deadlines", run.run_id, words, (run.run_id,))
        if run.reason == "dependency_deadline" and run.ended_at is not None and run.ended_at < until - CLOCKS:
            words = f"given up at {clock(run.ended_at)}, before its deadline {clock(until)}"
            yield Violation("dependency_deadlines", run.run_id, words, (run.run_id,))
