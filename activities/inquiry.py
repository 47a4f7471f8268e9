"""Finding out what became of an execution whose worker has gone silent: from the claim and from the run folder."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from temporalio import activity

from activities.detached import DetachedActivities
from activities.watching import beating
from domain import frozen, ids
from domain.errors import Unavailable
from domain.lost_run import Ending, Evidence
from domain.run import TRANSITIONS, Run, RunState, advance
from domain.values import Value
from evidence import endings, folders
from readmodel.claims import Claims, ExecutionRecord
from readmodel.queries import Queries
from readmodel.tables import ExecutionStatus

LOOK_SECONDS = 60.0
"""How long one look at a detached execution waits for its end."""


class Inquiry(Value):
    run: Run
    """As its workflow knows it."""
    final: bool
    """Whether it will not be tried again: nobody may claim it from now on."""


class WatchExecution(Value):
    run: Run
    until: datetime
    every_seconds: int


class LateTruth(Value):
    """What an unknown run's execution has told after all; None when the time was over before."""

    ending: Ending | None


@dataclass(frozen=True)
class InquiryActivities:
    claims: Claims
    queries: Queries
    storage: Path
    detached: DetachedActivities

    @activity.defn(name="almanac.inquire")
    async def inquire(self, inquiry: Inquiry) -> Evidence:
        """Raises while the database does not answer."""
        run = inquiry.run
        if inquiry.final:
            claim = await self.claims.void(run_id=run.run_id, execution_id=ids.execution_id(run.run_id))
        else:
            claim = await self.claims.execution_of(run.run_id)
        if claim is None or claim.status is ExecutionStatus.VOID:
            return Evidence(claimed=None)
        claimed = _as_claimed(run, await self.queries.run(run.workspace, run.run_id), claim)
        if claim.outcome is not None:
            return Evidence(claimed=claimed, ending=_told(claim))
        told = await asyncio.to_thread(self._read_folder, claimed)
        return Evidence(claimed=claimed, began=told.began, ending=told.ending, unreadable=told.unreadable)

    @activity.defn(name="almanac.await_late_truth")
    async def await_late_truth(self, watch: WatchExecution) -> LateTruth:
        """Looks again and again. An outage of what it looks at is no answer."""
        with beating():
            while datetime.now(UTC) < watch.until:
                ending = await self._look(watch.run)
                if ending is not None and ending.state in TRANSITIONS[RunState.UNKNOWN]:
                    return LateTruth(ending=ending)
                await asyncio.sleep(watch.every_seconds)
        return LateTruth(ending=None)

    async def _look(self, run: Run) -> Ending | None:
        try:
            claim = await self.claims.execution_of(run.run_id)
        except Unavailable:
            return None
        if claim is not None and claim.outcome is not None:
            return _told(claim)
        if frozen.is_detached(run):
            return await self.detached.look(run, LOOK_SECONDS)
        return (await asyncio.to_thread(self._read_folder, run)).ending

    def _read_folder(self, run: Run) -> endings.Told:
        owner = frozen.folder_owner(run)
        if run.execution_id is None or owner is None:
            return endings.Told()
        if run.run_folder is None:
            return endings.read(
                folders.review_folder_path(self.storage, run.workspace, owner, run.run_id), run.execution_id
            )
        # A manual run's folder leaves the slot when the next one takes it.
        name = folders.place_of(self.storage, run.workspace, owner, run.run_id) or run.run_folder
        folder = folders.run_folder_path(self.storage, run.workspace, owner, name)
        return endings.read(folder, run.execution_id)


def _told(claim: ExecutionRecord) -> Ending:
    assert claim.outcome is not None
    return Ending(state=claim.outcome, reason=claim.reason, message=claim.message)


def _as_claimed(run: Run, mirrored: Run, claim: ExecutionRecord) -> Run:
    """The run with what its claim froze. The mirror has it, unless a later attempt wrote there since."""
    if mirrored.execution_id == claim.execution_id:
        return mirrored
    if run.state is RunState.RUNNING:
        return run
    starting = advance(run, RunState.STARTING, claim.claimed_at, execution_id=claim.execution_id)
    return advance(starting.run, RunState.RUNNING, claim.claimed_at).run
