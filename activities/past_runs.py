"""The runs that there have been, as reviews look for them: by what is recorded of them, never by names of folders."""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import NotFound
from domain.run import Run, RunState
from readmodel.queries import Queries


@dataclass(frozen=True)
class PastRuns:
    queries: Queries

    async def latest(self, workspace: str, pipeline: str, states: frozenset[RunState]) -> Run | None:
        return await self.queries.latest_with_files(workspace, pipeline, states)

    async def of(self, workspace: str, pipeline: str, run_id: str) -> Run | None:
        try:
            run = await self.queries.run(workspace, run_id)
        except NotFound:
            return None
        known = run.is_final and run.run_folder is not None and run.files_expired_at is None
        return run if known and (run.prepared or {}).get("pipeline") == pipeline else None
