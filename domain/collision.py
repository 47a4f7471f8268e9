"""What happens between a pending run of a schedule and a newer one, as the collision policies have it."""

from __future__ import annotations

from datetime import datetime

from domain.run import Advanced, Folded, Run, RunState, advance, note


def skipped(run: Run, now: datetime, reason: str, message: str, *, stands_in: str | None = None) -> Advanced:
    return advance(run, RunState.SKIPPED, now, kind="finished", reason=reason, message=message, stands_in=stands_in)


def superseded(older: Run, newer: Run, now: datetime) -> Advanced:
    """The newer takes the older one's place, and stands for it."""
    return skipped(older, now, "superseded", f"The newer {newer.run_id} took its place.", stands_in=newer.run_id)


def gave_way(older: Run, newer: Run, now: datetime) -> Advanced:
    """The older stays, and the newer does not run."""
    return skipped(newer, now, "overlap", f"The older {older.run_id} was still pending.")


def folded(older: Run, newer: Run, now: datetime) -> tuple[Advanced, Advanced]:
    """The older stays and stands for the newer too: how the older goes on, and how the newer ends."""
    count = older.folded.count if older.folded else 1
    stands_for = Folded(first=older.reference_time, newest=newer.reference_time, count=count + 1)
    message = f"It now stands for {stands_for.count} occurrences."
    kept = note(older, "folded", now, message, data={"folded_run": newer.run_id}, folded=stands_for)
    ended = skipped(newer, now, "coalesced", f"Folded into {older.run_id}.", stands_in=older.run_id)
    return kept, ended
