"""Every due occurrence has exactly one disposition, and every ask that was answered has its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.evidence import Evidence, RunRow, Violation, clock
from tests.chaos.story import Story, story

OCCURRENCE = ("cron", "catch_up")


def due_once(evidence: Evidence) -> Iterator[Violation]:
    """A run row, a summary that covers it, or a time in which the schedule was to fire nothing; and no row of what was
    never due."""
    for life in evidence.lives:
        told = story(life)
        due = told.occurrences(evidence.until)
        rows = evidence.runs_of.get(life.schedule_id, [])
        single, stretches = _by_instant(rows), [row for row in rows if row.missed is not None]
        for at in due:
            found = single.get(at, []) + [
                row for row in stretches if row.missed and row.missed[0] <= at <= row.missed[1]
            ]
            yield from _judged(told, at, found)
        known = set(due)
        for at in single:
            if at not in known and _has_pattern(told, at):
                yield Violation(
                    "due_once", life.schedule_id, f"a run for {clock(at)}, which was never due", _ids(single[at])
                )


def _judged(told: Story, at: float, found: list[RunRow]) -> Iterator[Violation]:
    silence = told.silent(at)
    about, ids = told.life.schedule_id, _ids(found)
    if len(found) > 1:
        yield Violation("due_once", about, f"{clock(at)} is accounted for {len(found)} times", ids)
    elif found and silence:
        since, until = clock(silence.since), "the end" if silence.until == float("inf") else clock(silence.until)
        yield Violation("due_once", about, f"{clock(at)} fired while {silence.why} ({since} to {until})", ids)
    elif not found and not silence and not told.dropped(at):
        yield Violation("due_once", about, f"{clock(at)} was due and nothing became of it")


def _has_pattern(told: Story, at: float) -> bool:
    version = told.in_force(at)
    return version is not None and bool(version.body.get("cron"))


def _by_instant(rows: list[RunRow]) -> dict[float, list[RunRow]]:
    found: defaultdict[float, list[RunRow]] = defaultdict(list)
    for row in rows:
        if row.scheduled_for is not None and row.origin in OCCURRENCE:
            found[row.scheduled_for].append(row)
    return found


def _ids(rows: list[RunRow]) -> tuple[str, ...]:
    return tuple(row.run_id for row in rows)


def summaries_counted(evidence: Evidence) -> Iterator[Violation]:
    """A summary counts what its pattern has between its bounds, which are occurrences themselves."""
    for life in evidence.lives:
        due = story(life).occurrences(evidence.until)
        for row in evidence.runs_of.get(life.schedule_id, []):
            if row.missed is None:
                continue
            first, last, count = row.missed
            inside = [at for at in due if first <= at <= last]
            if len(inside) != count or inside[:1] != [first] or inside[-1:] != [last]:
                words = f"{clock(first)} to {clock(last)} is said to be {count}, and is {len(inside)}"
                yield Violation("summaries_counted", row.run_id, words, (row.run_id,))


def lateness_kept(evidence: Evidence) -> Iterator[Violation]:
    """What is called `cron` was at most its schedule's lateness late, and only `latest` catches up."""
    for life in evidence.lives:
        told = story(life)
        for row in evidence.runs_of.get(life.schedule_id, []):
            version = told.version(row.revision)
            if version is None or row.scheduled_for is None or not version.body.get("cron"):
                continue
            late = row.recorded_at - row.scheduled_for
            allowed = version.body.get("lateness_seconds", 600)
            if row.origin == "cron" and late > allowed:
                words = f"runs {late:.1f} s late, {allowed} s are allowed"
                yield Violation("lateness_kept", row.run_id, words, (row.run_id,))
            if row.origin == "catch_up" and version.body.get("missed_policy", "skip") != "latest":
                yield Violation("lateness_kept", row.run_id, "catches up, and its policy is to skip", (row.run_id,))


def asks_kept(evidence: Evidence) -> Iterator[Violation]:
    """What was answered is there, and a repeated request is one run."""
    deleted = {life.schedule_id: story(life).deleted_at for life in evidence.lives}
    by_key: defaultdict[str, set[str]] = defaultdict(set)
    for ask in evidence.asks:
        by_key[f"{ask.kind} {ask.key}"].add(ask.run_id)
        gone = deleted.get(ask.run_id.partition("-now-")[0], float("inf"))
        if ask.run_id not in evidence.run and not (ask.kind == "run_now_signal" and gone < float("inf")):
            words = f"{ask.kind} at {clock(ask.at)} was answered, and there is no such run"
            yield Violation("asks_kept", ask.run_id, words)
    for key, found in by_key.items():
        if len(found) > 1:
            yield Violation("asks_kept", key, "one request made several runs", tuple(sorted(found)))
