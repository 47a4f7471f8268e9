"""`run_metadata.json`: a run folder's own description, against which readers hold the documents in it. Unlike these it
is replaced, as a whole, when the next of its times becomes known."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from domain.identity import RunIdentity
from domain.run import RunState
from domain.values import Value

METADATA = "run_metadata.json"


class IdentityContradicted(Exception):
    """The folder already belongs to another producer."""


class RunMetadata(Value):
    """Whose folder it is, and what is known of its run. A time once known stays; absent means not yet."""

    identity: RunIdentity
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    status: RunState | None = None
    """The final state; a late truth may replace `unknown`."""


def read_metadata(folder: Path) -> RunMetadata | None:
    """None before anything was recorded. Raises OSError, and pydantic's ValidationError for what isn't metadata."""
    try:
        return RunMetadata.model_validate_json((folder / METADATA).read_bytes())
    except FileNotFoundError:
        return None
