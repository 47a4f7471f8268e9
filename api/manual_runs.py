"""Manual runs: a pipeline asked for by a person, straight from its lane.

The lane is asked first, and it tells the read model of the run too; so a request that breaks off in the middle has
either made nothing or a run that is told and will end. That the run is mirrored here as well makes it visible in the
very next read.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from api.temporal import ScheduleWorkflows
from domain import ids, manual_run
from domain.errors import NotFound
from domain.events import RunChanged
from domain.manual_run import ManualRun
from domain.run import Run
from executors.protocol import sealed
from executors.registry import Registry
from readmodel import audit
from readmodel.database import Database
from readmodel.projection import project
from readmodel.queries import Queries


@dataclass(frozen=True)
class ManualRuns:
    database: Database
    queries: Queries
    workflows: ScheduleWorkflows
    executors: Registry
    heartbeat_seconds: int

    async def start(
        self, workspace: str, pipeline: str, asked: ManualRun, *, by: str, key: str | None, now: datetime
    ) -> Run:
        """The same `key` is the same run. Raises Invalid for what could never run, after which nothing was changed;
        only of an Unavailable nobody knows."""
        key = key or secrets.token_hex(16)
        run_id = ids.manual_run_id(workspace, pipeline, key)
        with suppress(NotFound):
            return await self.queries.run(workspace, run_id)
        manual_run.check(asked)
        executor = self.executors.for_save(manual_run.EXECUTOR)
        payload = await sealed(executor, workspace, manual_run.payload(pipeline, asked), {})
        target = await executor.validate(workspace, payload)
        request = manual_run.request(
            workspace,
            pipeline,
            asked,
            payload=dict(payload),
            target=target,
            key=key,
            by=by,
            heartbeat_seconds=self.heartbeat_seconds,
            now=now,
        )
        await self.workflows.request_lane(workspace, target, request)
        assert request.recorded is not None
        async with self.database.transaction() as connection:
            await project(connection, [RunChanged(change=request.recorded)])
            subjects = {"pipeline": pipeline, "run_id": run_id}
            await audit.append(connection, by=by, action="pipeline.run", workspace=workspace, subjects=subjects)
        return await self.queries.run(workspace, run_id)
