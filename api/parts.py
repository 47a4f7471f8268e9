"""What a request needs: the parts of the running API, the workspace it names, and who asks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Path, Request
from pydantic import StringConstraints

from api.advising import Adviser
from api.manual_runs import ManualRuns
from api.settings import Settings
from api.temporal import ScheduleWorkflows
from api.writing import ScheduleWriter
from domain.errors import Invalid, NotFound
from readmodel.database import Database
from readmodel.hooks import Hooks
from readmodel.pipelines import Pipelines
from readmodel.queries import Queries
from readmodel.results import Results
from readmodel.workspaces import Workspaces

DEFAULT_WORKSPACE = "default"
"""Made at its first use; every other one is made by a request that says so."""

OPERATOR = "operator"
"""Who holds the token, as audit and views name them."""

SCHEDULE_ID = re.compile(r"s[a-z2-7]{12}")
RUN_ID = re.compile(r"[A-Za-z0-9-]{1,100}")


@dataclass(frozen=True)
class Parts:
    settings: Settings
    database: Database
    queries: Queries
    pipelines: Pipelines
    workspaces: Workspaces
    workflows: ScheduleWorkflows
    writer: ScheduleWriter
    manual_runs: ManualRuns
    adviser: Adviser
    hooks: Hooks
    results: Results


def _parts(request: Request) -> Parts:
    parts = request.app.state.parts
    assert isinstance(parts, Parts)
    return parts


PartsOf = Annotated[Parts, Depends(_parts)]


async def _workspace(
    parts: PartsOf, workspace: Annotated[str, Path(description="The workspace's name.", examples=["default"])]
) -> str:
    try:
        await parts.workspaces.require(workspace)
    except NotFound:
        if workspace != DEFAULT_WORKSPACE:
            raise
        await parts.workspaces.ensure(workspace)
    return workspace


WorkspaceName = Annotated[str, Depends(_workspace)]


def _schedule_id(schedule_id: Annotated[str, Path(examples=["s4m2k7x3qh5ta"])]) -> str:
    if not SCHEDULE_ID.fullmatch(schedule_id):
        raise NotFound("schedule.not_found", "There is no such schedule in this workspace.")
    return schedule_id


ScheduleId = Annotated[str, Depends(_schedule_id)]


def _run_id(run_id: Annotated[str, Path(examples=["s4m2k7x3qh5ta-20270314T070000Z"])]) -> str:
    if not RUN_ID.fullmatch(run_id):
        raise NotFound("run.not_found", "There is no such run in this workspace.")
    return run_id


RunId = Annotated[str, Depends(_run_id)]

Key = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]

IdempotencyKey = Annotated[
    Key | None,
    Header(
        description="Repeating a request with the same key, of 1 to 200 printable characters, changes nothing more."
    ),
]


def one_key(header: str | None, body: str | None) -> str | None:
    """The key of a request that may name it in either place."""
    if header is not None and body not in (None, header):
        raise Invalid("request.key_ambiguous", "The header and the body name different keys.", field="key")
    return header or body


Search = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
