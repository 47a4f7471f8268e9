"""How an execution ended, kept in its run folder for whoever has to know when the worker that ran it is gone."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from domain.identity import RunIdentity
from domain.lost_run import Ending
from domain.run import RunState
from domain.values import Value
from evidence import documents

KIND = "outcome"


class Told(Value):
    """What the folder says of its execution."""

    began: bool = False
    ending: Ending | None = None
    unreadable: str | None = None
    """Why it can't be told whether and how it ended."""


def write(folder: Path, identity: RunIdentity, ending: Ending, at: datetime) -> None:
    """The reason first, so that a folder that says how its run ended can also say why. Raises OSError, and
    documents.IdentityContradicted when the folder is another run's."""
    if ending.reason or ending.message:
        documents.write(folder, identity, KIND, ending.model_dump(mode="json"))
    documents.record_metadata(folder, identity, at, status=ending.state)


def read(folder: Path, execution_id: str) -> Told:
    """Never raises for what the folder holds. An end whose reason can't be read is an end without a reason."""
    try:
        metadata = documents.read_metadata(folder)
    except (OSError, ValueError) as error:
        return Told(unreadable=f"{documents.METADATA}: {type(error).__name__}")
    if metadata is None:
        return Told()
    if metadata.identity.execution_id != execution_id:
        return Told(unreadable=f"{documents.METADATA} belongs to another execution")
    if metadata.status is None:
        return Told(began=metadata.started_at is not None)
    return Told(began=True, ending=_with_reason(folder, metadata.status))


def _with_reason(folder: Path, state: RunState) -> Ending:
    written = sorted(folder.glob(f"{KIND}-*.json"), key=lambda path: (len(path.name), path.name))
    if not written:
        return Ending(state=state)
    try:
        ending = Ending.model_validate(json.loads(written[-1].read_bytes())["body"])
    except (OSError, ValueError, KeyError, TypeError):
        return Ending(state=state, message="Why it ended was written down and can't be read.")
    return ending if ending.state is state else Ending(state=state)
