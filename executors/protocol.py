"""What an executor has to offer. The scheduler passes payloads through and never reads them.

An executor's life with one run: `validate` when a schedule is saved, `prepare` when the run is admitted (it
freezes what will run), and once the run is claimed and its RUNNING record is committed either `execute`, in a worker's
slot, or `launch` and `observe`, for what goes on elsewhere without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from pydantic import JsonValue

from domain.identity import RunIdentity
from domain.parameters import Reference
from domain.run import RunState
from domain.values import Value

Payload = Mapping[str, JsonValue]


class Refused(Exception):
    """Nothing ran and nothing will: the run ends `not_started` with this reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class EvidenceRun(Value):
    """The run that a review reviews."""

    run_id: str
    owner: str
    """The pipeline whose run it is."""
    run_folder: str


class Prepared(Value):
    """What one run will execute, frozen: neither a release nor an edit changes it any more."""

    target: str
    snapshot: dict[str, JsonValue]
    """What readers see of it, such as `{pipeline_id, version, body_sha256}`."""
    folder_owner: str
    """The path below the workspace's storage that the run folder belongs to: the pipeline's name."""
    run_retention_count: int | None = None
    """So many ended runs of each family of the folder's owner keep their files; all without it."""
    body: JsonValue
    """What `execute` needs, opaque to everybody else."""
    evidence: EvidenceRun | None = None
    """Set by a review: it produces nothing, so it gets no run folder."""
    outlives_worker: bool = False
    """Whether something that it starts may go on when its worker is lost. Nothing but the truth or a person then ends
    the doubt about its lane."""


class Execution(Value):
    identity: RunIdentity
    prepared: Prepared
    folder: Path
    """The run folder, already bound to the run; a group's folder in it while that group's steps run."""
    timeout_seconds: int
    reviews: Path | None = None
    """The folder of the run that is reviewed; `folder` is then no run folder but the review's own."""
    evaluates: Path | None = None
    """The folder of the run that is evaluated; `folder` is then the evaluation's own."""
    reference_time: datetime | None = None
    """The run's frozen reference time, which a Run now has where it has no occurrence."""


class Detached(Value):
    """An execution that goes on outside of any worker slot. All of it is in the run's row, so that whoever comes after
    a lost worker knows as much as that one did."""

    identity: RunIdentity
    snapshot: dict[str, JsonValue]
    """What `prepare` froze."""
    timeout_seconds: int


LARGEST_RESULT = 64 << 10
"""Bytes of a small result's text."""


class TooLarge(Exception):
    """There is a result, and it is too large to be a small one."""


class Result(Value):
    """What an execution returns to who asks soon; what lasts is what it wrote."""

    content: JsonValue
    ttl_seconds: int = 3600

    @classmethod
    def of(cls, content: object, ttl_seconds: int = 3600) -> Self:
        """Without halves of surrogate pairs, which no answer could carry. Raises ValueError, TypeError or
        RecursionError for what is no JSON, or none that others can read, and TooLarge."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        if len(text) > LARGEST_RESULT:
            raise TooLarge(f"It has more than {LARGEST_RESULT} bytes.")
        return cls(content=json.loads(text), ttl_seconds=ttl_seconds)


class Outcome(Value):
    """How an execution ended: succeeded, failed, cancelled or aborted, with the reason that belongs to it."""

    state: RunState
    reason: str | None = None
    message: str | None = None
    steps_run: int = 0
    result: Result | None = None


class Executor(Protocol):
    """What every executor has; beside it, it is a SlotExecutor or a DetachedExecutor."""

    name: str

    async def validate(self, workspace: str, payload: Payload) -> str:
        """Checks a payload when a schedule is saved and answers its target, the name of its lane. Raises
        domain.errors.Invalid with the path of the field."""

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        """Freezes what a run of this payload executes; what depends on the time is computed on `reference`. Raises
        Refused."""


@runtime_checkable
class SlotExecutor(Executor, Protocol):
    async def execute(self, execution: Execution, progress: Callable[[str], None]) -> Outcome:
        """Runs to the end and says how it ended; `progress` takes a line for people and is cheap. When the
        surrounding task is cancelled it stops its processes, waits for their end and re-raises."""


@runtime_checkable
class DetachedExecutor(Executor, Protocol):
    """All three may be called again for the same execution, by any worker and after any crash."""

    async def launch(self, execution: Detached) -> None:
        """Has it begin. An execution of this id that was launched before is not begun a second time. Whatever it
        raises, it is asked again for a while; then nobody can say whether it began."""

    async def observe(self, execution: Detached) -> Outcome:
        """How it ended, once it has. `unknown` / `execution_missing` when there is no such execution (any more). Must
        bear being cancelled, which says nothing about the execution."""

    async def cancel(self, execution: Detached) -> None:
        """Asks it to end; `observe` tells whether and how it did. One that has ended already is no error."""


@runtime_checkable
class Rechecks(Protocol):
    """What an executor offers too, if what it freezes may be edited until it is launched."""

    async def recheck(self, workspace: str, prepared: Prepared) -> None:
        """Asked right before the claim. Raises Refused `version_changed` when what was frozen has become another."""


@runtime_checkable
class KeepsSecrets(Protocol):
    """What an executor offers too, if its payloads may have secrets in them."""

    async def seal(self, workspace: str, payload: Payload, before: Payload) -> Payload:
        """The payload as it may be kept and carried about, with each secret as `domain.secrets.sealed`. The mask stands
        for what is sealed in `before`, the payload that this one replaces. Raises domain.errors.Invalid."""


async def sealed(executor: Executor, workspace: str, payload: Payload, before: Payload) -> Payload:
    """What `KeepsSecrets.seal` answers, where the executor is one; else the payload as it is."""
    return await executor.seal(workspace, payload, before) if isinstance(executor, KeepsSecrets) else payload
