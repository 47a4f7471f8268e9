"""Runs make room for newer ones: beside the executions, and never in their way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from domain.errors import AlmanacError
from domain.events import RunChanged
from domain.run import Run, note
from evidence import index, retention
from evidence.folders import runs_directory
from evidence.index import Entry
from readmodel.projection import Projector
from readmodel.queries import Queries

log = logging.getLogger("almanac.retention")

EVIDENCE_RUN = "evidence_run_id"
"""In what a review has frozen: the run that it reviews."""


@dataclass(frozen=True)
class Retention:
    queries: Queries
    projector: Projector
    storage: Path
    _sweeps: dict[tuple[str, str], asyncio.Task[None]] = field(default_factory=dict)

    def begin(self, workspace: str, pipeline: str, keep: int) -> None:
        """Sweeps in the background, unless that is already going on for this pipeline. What breaks off, the next one
        completes."""
        key = (workspace, pipeline)
        if key not in self._sweeps:
            self._sweeps[key] = task = asyncio.create_task(self._guarded(workspace, pipeline, keep))
            task.add_done_callback(lambda _: self._sweeps.pop(key))

    async def sweep(self, workspace: str, pipeline: str, keep: int) -> tuple[Entry, ...]:
        """Deletes the files of the runs beyond `keep` of each family, and answers which. Raises OSError and
        domain.errors refusals."""
        runs = Path(runs_directory(self.storage, workspace, pipeline))
        known = await asyncio.to_thread(index.read, runs)
        entries = await self._settled(workspace, runs, known.runs)
        now = datetime.now(UTC)
        going = retention.due(entries, keep, await self._reviewed(workspace), now)
        await asyncio.to_thread(retention.expire, self.storage, workspace, pipeline, going, now)
        marked = [entry.model_copy(update={"expired_at": now}) for entry in going]
        await self._tell(workspace, (*marked, *entries))
        return going

    async def _settled(self, workspace: str, runs: Path, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The end of a run whose worker was lost is in the history alone, so the index learns it from there."""
        open_ones = [entry.run_id for entry in entries if entry.run_id and entry.status is None]
        ended = {run.run_id: run for run in await self.queries.runs_with_files(workspace, open_ones) if run.is_final}
        if not ended:
            return entries

        def learned(known: dict[str, Entry]) -> dict[str, Entry]:
            return known | {
                key: entry.model_copy(update={"status": ended[key].state, "completed_at": ended[key].ended_at})
                for key, entry in known.items()
                if key in ended and entry.status is None
            }

        return (await asyncio.to_thread(index.change, runs, learned)).runs

    async def _reviewed(self, workspace: str) -> set[str]:
        """The runs that reviews are bound to."""
        return {str(run.prepared[EVIDENCE_RUN]) for run in await self.queries.reviews(workspace) if run.prepared}

    async def _tell(self, workspace: str, expired: Iterable[Entry]) -> None:
        """Every expired run's history says so, also where an earlier sweep broke off before it did."""
        since = {entry.run_id: entry.expired_at for entry in expired if entry.run_id and entry.expired_at}
        untold = [run for run in await self.queries.runs_with_files(workspace, since) if run.is_final]
        await self.projector.project([_expired(run, since[run.run_id]) for run in untold])

    async def _guarded(self, workspace: str, pipeline: str, keep: int) -> None:
        try:
            for entry in await self.sweep(workspace, pipeline, keep):
                log.info("evidence.expired workspace=%s pipeline=%s folder=%s", workspace, pipeline, entry.folder)
        except (OSError, ValueError, AlmanacError):
            log.exception("evidence.retention_failed workspace=%s pipeline=%s", workspace, pipeline)


def _expired(run: Run, at: datetime) -> RunChanged:
    message = f"Newer runs took the place of its files in {run.run_folder}."
    return RunChanged(change=note(run, "files_expired", at, message, files_expired_at=at))
