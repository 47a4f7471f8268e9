"""What is known of a chaos run once all is quiet: read from Temporal's histories, the database, the run folders and the
ledger that steps wrote. Plain values; times are seconds since the epoch. Checks look at nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Ask:
    """A request that was answered with the id of its run, or a signal that the server has taken."""

    at: float
    kind: str
    run_id: str
    key: str


@dataclass(frozen=True)
class Line:
    """One line of the ledger: a step `began`, gave a `beat`, `ended`, `failed` or was `stopped`."""

    at: float
    what: str
    run: str
    execution: str
    schedule: str | None
    step: str
    pid: int


@dataclass(frozen=True)
class TrailRow:
    seq: int
    at: float
    kind: str
    state: str
    reason: str | None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRow:
    """A run as the read model has it. `record` is the whole of it."""

    run_id: str
    workspace: str
    schedule_id: str | None
    origin: str
    state: str
    reason: str | None
    seq: int
    scheduled_for: float | None
    target: str
    revision: int | None
    recorded_at: float
    started_at: float | None
    ended_at: float | None
    execution_id: str | None
    run_folder: str | None
    stands_in: str | None
    missed: tuple[float, float, int] | None
    """First, last and how many."""
    start_by: float | None
    waits_for: tuple[dict[str, Any], ...]
    trail: tuple[TrailRow, ...]
    record: dict[str, Any]


@dataclass(frozen=True)
class Claim:
    execution_id: str
    run_id: str
    worker: str | None
    status: str
    outcome: str | None


@dataclass(frozen=True)
class Said:
    """What a schedule's workflow was told: an update it accepted or a signal, and when the workflow task that dealt
    with it began, which is the schedule's own time of it."""

    at: float
    name: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Life:
    """A schedule's workflow, over all its continuations."""

    workspace: str
    schedule_id: str
    said: tuple[Said, ...]
    tasks: tuple[float, ...]
    """When each of its workflow tasks that was completed began."""
    view: dict[str, Any] | None
    """What it answers now; None when it is over."""


@dataclass(frozen=True)
class Workflow:
    """One execution of any workflow."""

    workflow_id: str
    kind: str
    status: str
    result: dict[str, Any] | None
    """What a run's workflow says of its run."""
    failures: tuple[str, ...]
    """Of its workflow tasks, other than lost workers."""


@dataclass(frozen=True)
class Folder:
    workspace: str
    pipeline: str
    name: str
    marker: str | None
    metadata: dict[str, Any] | None


@dataclass(frozen=True)
class Evidence:
    until: float
    """Occurrences up to here are looked at."""
    fence_seconds: float
    steps: dict[tuple[str, str], int]
    """How many steps the pipelines have, by workspace and name."""
    runs: tuple[RunRow, ...]
    schedules: dict[str, dict[str, Any]]
    """The read model's schedules, by id."""
    lives: tuple[Life, ...]
    workflows: tuple[Workflow, ...]
    claims: tuple[Claim, ...]
    ledger: tuple[Line, ...]
    folders: tuple[Folder, ...]
    asks: tuple[Ask, ...]
    halts: tuple[tuple[str, float, float], ...]
    """Workers that were halted, from when until when."""

    @cached_property
    def run(self) -> Mapping[str, RunRow]:
        return {run.run_id: run for run in self.runs}

    @cached_property
    def runs_of(self) -> Mapping[str, list[RunRow]]:
        """By schedule."""
        found: defaultdict[str, list[RunRow]] = defaultdict(list)
        for run in self.runs:
            if run.schedule_id is not None:
                found[run.schedule_id].append(run)
        return found

    @cached_property
    def lines_of(self) -> Mapping[str, list[Line]]:
        """By run, in the order of time."""
        found: defaultdict[str, list[Line]] = defaultdict(list)
        for line in sorted(self.ledger, key=lambda line: line.at):
            found[line.run].append(line)
        return found


@dataclass(frozen=True)
class Violation:
    check: str
    about: str
    """The run, schedule, lane or folder."""
    words: str
    runs: tuple[str, ...] = ()
    """Those whose rows, trails and ledger lines show it."""


def seconds(text: str | None) -> float | None:
    """Of a time as the product writes it."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def clock(at: float | None) -> str:
    return "-" if at is None else datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S.%f")[:-3]
