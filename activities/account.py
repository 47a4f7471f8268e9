"""The account that is kept of an execution: in its run folder, in the record of its claim, and its small result.

Each of them may be out of order without changing how the run ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from temporalio import activity

from domain import frozen
from domain.errors import Unavailable
from domain.identity import RunIdentity
from domain.lost_run import Ending
from domain.run import Origin, Run
from evidence import documents, endings, folders
from evidence.book import SLOT
from executors.protocol import Outcome
from readmodel.claims import Claims
from readmodel.results import Results

RUN_KINDS = {Origin.HOOK: "hook", Origin.MANUAL: "manual"}
"""Whatever else a run comes from, it is a schedule's."""


@dataclass(frozen=True)
class Account:
    claims: Claims
    results: Results
    storage: Path

    async def begin(self, run: Run) -> None:
        try:
            await asyncio.to_thread(
                documents.record_metadata,
                folder_of(self.storage, run),
                identity_of(run),
                datetime.now(UTC),
                started=True,
            )
        except (OSError, documents.IdentityContradicted):
            activity.logger.exception("evidence.metadata_unwritten")

    async def close(self, run: Run, outcome: Outcome) -> None:
        """Once it has ended; what is written down of an end is never another one later."""
        at = datetime.now(UTC)
        try:
            await asyncio.to_thread(self._write, run, outcome, at)
        except (OSError, documents.IdentityContradicted):
            activity.logger.exception("evidence.metadata_unwritten")
        try:
            await self.claims.finish(
                str(run.execution_id), outcome=outcome.state, at=at, reason=outcome.reason, message=outcome.message
            )
            if outcome.result is not None:
                await self.results.keep(run, outcome.result.content, outcome.result.ttl_seconds)
        except Unavailable as error:
            activity.logger.warning("scheduler.end_unrecorded %s", error.message)

    def _write(self, run: Run, outcome: Outcome, at: datetime) -> None:
        folder, identity = self._folder_now(run), identity_of(run)
        if outcome.result is not None and frozen.is_detached(run):
            body: documents.Body = {"result": outcome.result.content}
            documents.write(folder, identity, "result", body, completed_at=at, status=outcome.state)
        ending = Ending(state=outcome.state, reason=outcome.reason, message=outcome.message)
        endings.write(folder, identity, ending, at)

    def _folder_now(self, run: Run) -> Path:
        """A manual run that was taken for lost may have left the slot while its worker was halted."""
        where = (self.storage, run.workspace, _owner(run))
        name = folders.place_of(*where, run.run_id) if run.run_folder == SLOT else None
        return folder_of(self.storage, run) if name is None else folders.run_folder_path(*where, name)


def folder_of(storage: Path, run: Run) -> Path:
    """Where a claimed run's files were put: a review's are in no run folder."""
    where = (storage, run.workspace, _owner(run))
    if run.run_folder is None:
        return folders.review_folder_path(*where, run.run_id)
    return folders.run_folder_path(*where, run.run_folder)


def identity_of(run: Run) -> RunIdentity:
    """What each document of a claimed run says of its origin."""
    assert run.execution_id is not None
    return RunIdentity(
        run_kind=RUN_KINDS.get(run.origin, "schedule"),
        run_id=run.run_id,
        workspace=run.workspace,
        schedule_id=run.schedule_id,
        scheduled_for=run.scheduled_for,
        trigger_source=run.origin,
        execution_id=run.execution_id,
        run_folder=run.run_folder or f"reviews/{run.run_id}",
        plan_revision=run.schedule_revision,
    )


def _owner(run: Run) -> str:
    owner = frozen.folder_owner(run)
    assert owner is not None, "a claim freezes whose folder the run's is in"
    return owner
