"""The claim: the one conditional write that decides who launches a run, with one winner for ever.

A run launches at most once, so its row in `executions` is never replaced: it is claimed by a worker and later
ended, or it is void. Voiding takes the same row, so that a claim which is slow, or whose answer was lost, can
not come true after somebody has decided that nothing ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from domain.errors import Unavailable
from domain.events import Event
from domain.run import RunState
from domain.values import Value
from readmodel.database import COMMAND_SECONDS, Database
from readmodel.projection import project
from readmodel.tables import ExecutionStatus, executions
from readmodel.text import storable_text


class ClaimUnconfirmed(Exception):
    """The claim was sent to be committed and no answer came: nobody knows yet whether it was. `message` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ExecutionRecord(Value):
    execution_id: str
    run_id: str
    worker: str | None
    """Who claimed it; absent when void."""
    status: ExecutionStatus
    claimed_at: datetime
    ended_at: datetime | None
    outcome: RunState | None
    reason: str | None
    message: str | None


class Claims:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self,
        started: Iterable[Event],
        *,
        run_id: str,
        execution_id: str,
        worker: str,
        timeout_seconds: float = COMMAND_SECONDS,
    ) -> bool:
        """Whether this worker may launch the run, and nobody else ever. With the claim `started` is mirrored, in one
        transaction; when the run is claimed or void already, nothing is written, whoever asks.

        Raises Unavailable `database.unavailable` when that isn't done within `timeout_seconds` and certainly never
        will be, and ClaimUnconfirmed when it may have been done all the same: nothing may be launched, and `void`
        tells which it was.
        """
        won = sent = False
        try:
            async with self._database.transaction(timeout_seconds) as connection:
                claimed = (
                    insert(executions)
                    .values(execution_id=execution_id, run_id=run_id, worker=worker, status=ExecutionStatus.CLAIMED)
                    .on_conflict_do_nothing()
                    .returning(executions.c.execution_id)
                )
                won = await connection.scalar(claimed) is not None
                if won:
                    await project(connection, started)
                sent = won
        except Unavailable as error:
            # What was never sent to be committed is rolled back, whatever happens to the connection.
            if sent:
                raise ClaimUnconfirmed(error.message) from error
            raise
        return won

    async def void(self, *, run_id: str, execution_id: str) -> ExecutionRecord | None:
        """Makes sure that nobody can claim the run any more, and returns None; or returns the claim that came first.
        A claim still on its way is waited for. Repeating it changes nothing."""
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(executions)
                .values(execution_id=execution_id, run_id=run_id, status=ExecutionStatus.VOID)
                .on_conflict_do_nothing()
            )
        found = await self.execution_of(run_id)
        return None if found is None or found.status is ExecutionStatus.VOID else found

    async def execution_of(self, run_id: str) -> ExecutionRecord | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(select(executions).where(executions.c.run_id == run_id))).first()
        return None if row is None else ExecutionRecord.model_validate(dict(row._mapping))

    async def finish(
        self,
        execution_id: str,
        *,
        outcome: RunState,
        at: datetime,
        reason: str | None = None,
        message: str | None = None,
    ) -> bool:
        """Keeps how an execution ended, as the one who ran it saw it. Returns whether this was the first end told;
        a later one changes nothing."""
        ended = (
            update(executions)
            .where(executions.c.execution_id == execution_id, executions.c.status == ExecutionStatus.CLAIMED)
            .values(
                status=ExecutionStatus.ENDED,
                outcome=outcome,
                ended_at=at,
                reason=reason,
                message=None if message is None else storable_text(message),
            )
            .returning(executions.c.execution_id)
        )
        async with self._database.transaction() as connection:
            return await connection.scalar(ended) is not None
