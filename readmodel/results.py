"""The small results of runs, which can be read for a while after their end. What lasts is what the steps wrote.

They are here and not in the run folders, so that who serves them needs no storage and nobody takes them for evidence.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from pydantic import JsonValue
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from domain.errors import NotFound
from domain.run import Run
from domain.values import Value
from readmodel.database import Database
from readmodel.tables import results

LONGEST = timedelta(hours=1)
"""No result can be read for longer."""


class RunResult(Value):
    run_id: str
    result: JsonValue
    expires_at: datetime


class Results:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, run: Run, content: JsonValue, ttl_seconds: int) -> None:
        """For so long from now; with it those go whose time is over. One that is kept already stays."""
        kept = {"run_id": run.run_id, "workspace": run.workspace, "content": json.dumps(content)}
        until = func.now() + timedelta(seconds=ttl_seconds)
        async with self._database.transaction() as connection:
            await connection.execute(delete(results).where(results.c.expires_at <= func.now()))
            await connection.execute(insert(results).values(**kept, expires_at=until).on_conflict_do_nothing())

    async def of(self, run: Run, now: datetime) -> RunResult:
        """Raises NotFound `run.no_result` and `run.result_expired`."""
        mine = (results.c.run_id == run.run_id) & (results.c.workspace == run.workspace)
        asked = select(results).where(mine, results.c.expires_at > func.now())
        async with self._database.reading() as connection:
            row = (await connection.execute(asked)).first()
        if row is not None:
            return RunResult(run_id=row.run_id, result=json.loads(row.content), expires_at=row.expires_at)
        if run.ended_at is not None and run.ended_at + LONGEST < now:
            raise NotFound(
                "run.result_expired", "A result can be read for an hour at most. What the steps wrote lasts."
            )
        raise NotFound("run.no_result", "The run has no result, or has it no longer. What its steps wrote lasts.")
