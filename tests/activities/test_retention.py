"""Retention with the history beside it: what is open or reviewed stays, and an expired run's row says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.retention import EVIDENCE_RUN, Retention
from domain.identity import RunIdentity
from domain.run import Origin, Run, RunState
from evidence import documents, folders, index
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from tests.readmodel.samples import a_run, whole_life

pytestmark = pytest.mark.stack

AT = datetime(2027, 3, 14, 7, tzinfo=UTC)


@dataclass
class Ledger:
    """Runs of one pipeline, in the history and on disk."""

    database: Database
    workspace: str
    storage: Path

    @property
    def retention(self) -> Retention:
        return Retention(Queries(self.database), Projector(self.database), self.storage)

    @property
    def runs(self) -> Path:
        return self.storage / self.workspace / "close" / "runs"

    async def ran(self, number: int, *, history: int = 5, ended: bool = True, **changes: Any) -> str:
        """A run of which the history has the first `history` events, and the folder's description the end or not."""
        run = a_run(f"s-{self.workspace}", number, workspace=self.workspace)
        name = folders.allocate(self.storage, self.workspace, "close", "sched", run.run_id)
        events = whole_life(run.model_copy(update={"run_folder": name, **changes}))
        await Projector(self.database).project(events[:history])
        identity = RunIdentity(
            run_kind="schedule",
            run_id=run.run_id,
            workspace=self.workspace,
            schedule_id=run.schedule_id,
            scheduled_for=run.scheduled_for,
            trigger_source=Origin.CRON,
            execution_id=f"e-{run.run_id}",
            run_folder=name,
            plan_revision=1,
        )
        at = AT + timedelta(minutes=number)
        status = RunState.SUCCEEDED if ended else None
        documents.record_metadata(self.runs / name, identity, at, started=True, status=status)
        return run.run_id

    async def sweep(self, keep: int = 1) -> list[str | None]:
        return [entry.run_id for entry in await self.retention.sweep(self.workspace, "close", keep)]

    async def run(self, run_id: str) -> Run:
        return await Queries(self.database).run(self.workspace, run_id)


@pytest.fixture
def ledger(database: Database, workspace: str, storage: Path) -> Ledger:
    return Ledger(database, workspace, storage)


async def test_an_expired_runs_history_says_so(ledger: Ledger) -> None:
    old, new = await ledger.ran(1), await ledger.ran(2)
    assert await ledger.sweep() == [old]
    run = await ledger.run(old)
    assert run.files_expired_at is not None
    assert run.state is RunState.SUCCEEDED
    trail = await Queries(ledger.database).trail(ledger.workspace, old)
    assert (trail[-1].kind, trail[-1].state) == ("files_expired", RunState.SUCCEEDED)
    assert (await ledger.run(new)).files_expired_at is None


async def test_an_active_run_keeps_its_files(ledger: Ledger) -> None:
    running, *_ = await ledger.ran(1, history=4, ended=False), await ledger.ran(2), await ledger.ran(3)
    assert running not in await ledger.sweep()
    assert folders.place_of(ledger.storage, ledger.workspace, "close", running) is not None


async def test_a_run_whose_worker_was_lost_goes_once_the_history_knows_its_end(ledger: Ledger) -> None:
    lost, _ = await ledger.ran(1, ended=False), await ledger.ran(2)
    assert await ledger.sweep() == [lost]


async def test_the_target_of_an_open_review_keeps_its_files(ledger: Ledger) -> None:
    target, _ = await ledger.ran(1), await ledger.ran(2)
    await ledger.ran(3, history=4, ended=False, prepared={EVIDENCE_RUN: target})
    assert await ledger.sweep() == []


async def test_a_history_that_was_not_told_is_told_by_the_next_sweep(ledger: Ledger) -> None:
    old, _ = await ledger.ran(1), await ledger.ran(2)
    [entry] = [entry for entry in index.read(ledger.runs).runs if entry.run_id == old]
    index.change(ledger.runs, lambda known: known | {old: entry.model_copy(update={"expired_at": AT})})
    assert await ledger.sweep() == []
    assert (await ledger.run(old)).files_expired_at == AT
    assert folders.place_of(ledger.storage, ledger.workspace, "close", old) is None
    told = (await ledger.run(old)).seq
    await ledger.sweep()
    assert (await ledger.run(old)).seq == told
