"""One holder of a lane and one active run of a schedule at a time: by what steps wrote, and by what is recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.chaos.evidence import Evidence, RunRow, Violation, clock
from tests.chaos.story import Story, story

OPEN = {"waiting", "queued", "starting", "running"}
CLOCKS = 0.05


@dataclass(frozen=True)
class Span:
    since: float
    until: float
    run_id: str


def lanes_exclusive(evidence: Evidence) -> Iterator[Violation]:
    told = {life.schedule_id: story(life) for life in evidence.lives}
    lanes: defaultdict[str, list[RunRow]] = defaultdict(list)
    for run in evidence.runs:
        if not _parallel(told, run):
            lanes[f"{run.workspace}/{run.target}"].append(run)
    for lane, runs in lanes.items():
        yield from _one_at_a_time("lanes_exclusive", lane, evidence, runs)
        yield from _doubts_kept(lane, evidence, told, runs)


def one_active(evidence: Evidence) -> Iterator[Violation]:
    for schedule_id, runs in evidence.runs_of.items():
        yield from _one_at_a_time("one_active", schedule_id, evidence, runs)


def _parallel(told: dict[str, Story], run: RunRow) -> bool:
    version = told[run.schedule_id].version(run.revision) if run.schedule_id in told else None
    return version is not None and version.body.get("admission") == "parallel"


def _one_at_a_time(check: str, about: str, evidence: Evidence, runs: Iterable[RunRow]) -> Iterator[Violation]:
    held = list(runs)
    for source, spans in (("steps", _worked(evidence, held)), ("records", _running(held))):
        for one, other in _overlaps(spans):
            words = (
                f"by their {source}, {one.run_id} until {clock(one.until)} and {other.run_id} from {clock(other.since)}"
            )
            yield Violation(check, about, words, (one.run_id, other.run_id))


def _overlaps(spans: list[Span]) -> Iterator[tuple[Span, Span]]:
    """Each span with the one that reaches furthest of those that began before."""
    furthest: Span | None = None
    for span in sorted(spans, key=lambda span: span.since):
        if furthest is not None and span.since < furthest.until - CLOCKS:
            yield furthest, span
        if furthest is None or span.until > furthest.until:
            furthest = span


def _worked(evidence: Evidence, runs: list[RunRow]) -> list[Span]:
    """From a run's first line to its last: so long it certainly worked. A halted worker can't stop its steps, so what
    is covered of a run that was given up ends with the fence."""
    workers = {claim.run_id: claim.worker for claim in evidence.claims}
    spans = []
    for run in runs:
        lines = evidence.lines_of.get(run.run_id)
        if not lines:
            continue
        since, until = lines[0].at, lines[-1].at
        if any(row.state == "unknown" for row in run.trail):
            halts = [at for worker, at, end in evidence.halts if worker == workers.get(run.run_id) and end > since]
            until = min([until, *(max(since, at) + evidence.fence_seconds for at in halts if at < until)])
        spans.append(Span(since, until, run.run_id))
    return spans


def _running(runs: list[RunRow]) -> list[Span]:
    spans = []
    for run in runs:
        since = next((row.at for row in run.trail if row.state == "running"), None)
        until = next((row.at for row in run.trail if row.state not in OPEN), None)
        if since is not None and until is not None:
            spans.append(Span(since, until, run.run_id))
    return spans


def _doubts_kept(lane: str, evidence: Evidence, told: dict[str, Story], runs: list[RunRow]) -> Iterator[Violation]:
    """An unknown run keeps its lane until the late truth, a person's unblock, or the end of the fence."""
    claims = {run.run_id: row.at for run in runs for row in run.trail if row.kind == "claimed"}
    for run in runs:
        lost = next((row for row in run.trail if row.state == "unknown"), None)
        if lost is None or lost.reason == "start_failed":
            continue
        until = lost.at + evidence.fence_seconds
        truths = [row.at for row in run.trail if row.kind == "updated_after_unknown"]
        said = told[run.schedule_id].life.said if run.schedule_id in told else ()
        freed = [each.at for each in said if each.name == "unblock" and each.at > lost.at]
        until = min([until, *truths, *freed])
        for other, at in claims.items():
            if other != run.run_id and lost.at < at < until - CLOCKS:
                words = f"in doubt until {clock(until)} for {run.run_id}, and {other} was claimed at {clock(at)}"
                yield Violation("lanes_exclusive", lane, words, (run.run_id, other))
