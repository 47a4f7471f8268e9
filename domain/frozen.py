"""What a run's frozen part says to the scheduler itself, beside what it says to readers."""

from __future__ import annotations

from pydantic import JsonValue

from domain.run import Run

FOLDER_OWNER = "folder_owner"
"""Where its folder is."""

DETACHED = "detached"
"""That its execution goes on outside of any worker slot."""

OUTLIVES_WORKER = "outlives_worker"
"""That what it started may go on when the worker that ran it is gone."""

Frozen = dict[str, JsonValue]


def frozen(snapshot: Frozen, folder_owner: str, *, detached: bool = False, outlives_worker: bool = False) -> Frozen:
    """What readers see of what was frozen, and what the scheduler itself has to know of it later."""
    marks: Frozen = {FOLDER_OWNER: folder_owner}
    marks |= {DETACHED: True} if detached else {}
    marks |= {OUTLIVES_WORKER: True} if detached or outlives_worker else {}
    return {**snapshot, **marks}


def folder_owner(run: Run) -> str | None:
    named = (run.prepared or {}).get(FOLDER_OWNER)
    return named if isinstance(named, str) else None


def is_detached(run: Run) -> bool:
    return (run.prepared or {}).get(DETACHED) is True


def outlives_worker(run: Run) -> bool:
    return (run.prepared or {}).get(OUTLIVES_WORKER) is True
