"""Who produced a document: what every file that a run writes says of its origin."""

from __future__ import annotations

from datetime import datetime

from domain.run import Origin
from domain.values import Value


class RunIdentity(Value):
    """Who produced a document. Written into every document of a run."""

    run_kind: str
    """schedule, hook or manual."""
    run_id: str
    workspace: str
    schedule_id: str
    scheduled_for: datetime | None
    trigger_source: Origin
    execution_id: str
    run_folder: str
    """The folder's name, such as iteration-7-sched."""
    group: str | None = None
    plan_revision: int
