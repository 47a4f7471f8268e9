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
    schedule_id: str | None
    """None for a manual run, which belongs to no schedule."""
    scheduled_for: datetime | None
    trigger_source: Origin
    execution_id: str
    run_folder: str
    """The folder's name, such as iteration-7-sched."""
    group: str | None = None
    parent_run_id: str | None = None
    """The run that this one is a part of, where a group of a run is executed as a run of its own."""
    plan_revision: int | None
    """The schedule's revision; None for a manual run."""

    def contradiction(self, owner: RunIdentity) -> str | None:
        """The first field in which this can't be of the run that owns the folder, or None. A group's documents are the
        run's own, and so are those of a run that names the owner as its parent."""
        shared = ["workspace", "run_kind", "run_folder", "schedule_id", "scheduled_for", "trigger_source"]
        if self.parent_run_id != owner.run_id:
            shared += ["run_id", "execution_id", "plan_revision", "parent_run_id"]
        return next((name for name in shared if getattr(self, name) != getattr(owner, name)), None)
