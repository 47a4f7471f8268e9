"""Mirrors what workflows decided. Events may come twice, late, overtaken and in any grouping: of each schedule
and each run the row of the highest `seq` stays, and a trail row, once written, is never written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from sqlalchemy import Insert, Table, bindparam, column, func, select
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.errors import AlmanacError, Unavailable
from domain.events import Event, RunChanged, ScheduleChanged
from domain.names import name_key
from domain.run import Run, TrailRow
from domain.schedule import ScheduleView
from readmodel.database import Database
from readmodel.tables import runs, schedules, trail
from readmodel.text import storable

Row = Mapping[str, Any]


def _insert_all(table: Table) -> Any:
    """An insert of all rows of the one parameter `rows`, a JSON array: one statement and one plan for a batch of
    any size."""
    columns = [column(c.name, c.type) for c in table.columns]
    incoming = func.jsonb_to_recordset(bindparam("rows", type_=JSONB)).table_valued(*columns, name="incoming")
    arriving = incoming.render_derived(name="incoming", with_types=True)
    return insert(table).from_select([c.name for c in columns], select(*arriving.columns))


def _newest_wins(table: Table, key: str) -> Insert:
    statement = _insert_all(table)
    replaced = {c.name: statement.excluded[c.name] for c in table.columns if c.name != key}
    return cast(
        Insert,
        statement.on_conflict_do_update(
            index_elements=[key], set_=replaced, where=statement.excluded.seq > table.columns.seq
        ),
    )


_MIRROR_SCHEDULES = _newest_wins(schedules, "schedule_id")
_MIRROR_RUNS = _newest_wins(runs, "run_id")
_APPEND_TRAIL = cast(Insert, _insert_all(trail).on_conflict_do_nothing())


async def project(connection: AsyncConnection, events: Iterable[Event]) -> None:
    """Mirrors `events` in at most three statements, in the caller's transaction. Characters that PostgreSQL can't
    store become U+FFFD. Rows are locked in the order of their keys, so that two batches never deadlock."""
    rows = _rows(events)
    for statement, batch in (
        (_MIRROR_SCHEDULES, rows.schedules),
        (_MIRROR_RUNS, rows.runs),
        (_APPEND_TRAIL, rows.trail),
    ):
        if batch:
            await connection.execute(statement, {"rows": [batch[key] for key in sorted(batch)]})


class _Rows(NamedTuple):
    schedules: dict[Any, Row]
    runs: dict[Any, Row]
    trail: dict[Any, Row]


def _rows(events: Iterable[Event]) -> _Rows:
    """One row for each key, because a statement may touch a row only once: the newest, of a trail row the first."""
    rows = _Rows({}, {}, {})
    for event in events:
        match event:
            case ScheduleChanged(schedule=schedule):
                _keep_newest(rows.schedules, schedule.schedule_id, _schedule_row(schedule))
            case RunChanged(change=change):
                _keep_newest(rows.runs, change.run.run_id, _row(runs, change.run))
                rows.trail.setdefault((change.trail.run_id, change.trail.seq), _row(trail, change.trail))
    return rows


def _keep_newest(rows: dict[Any, Row], key: str, row: Row) -> None:
    if key not in rows or row["seq"] > rows[key]["seq"]:
        rows[key] = row


def _schedule_row(schedule: ScheduleView) -> Row:
    row = _row(schedules, schedule)
    return row | {"name_key": name_key(row["record"]["definition"]["name"])}


def _row(table: Table, value: ScheduleView | Run | TrailRow) -> dict[str, Any]:
    record = storable(value.model_dump(mode="json"))
    return {c.name: record[c.name] for c in table.columns if c.name in record} | {"record": record}


_LARGEST_BATCH = 500
"""Events in one transaction: enough for a herd, small enough to be over in well under a second."""


class _Waiting(NamedTuple):
    events: tuple[Event, ...]
    done: asyncio.Future[None]


class Projector:
    """Commits what many callers of one process project at once together: while one transaction is on its way,
    the next gathers. Nobody waits for a timer, and a caller that is alone commits at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._committer: asyncio.Task[None] | None = None

    async def project(self, events: Iterable[Event]) -> None:
        """Returns when `events` are committed. Raises Unavailable `database.unavailable`, and Invalid for events
        that no table can hold, whoever else was in the batch. A caller that is cancelled may still be committed."""
        waiting = _Waiting(tuple(events), asyncio.get_running_loop().create_future())
        if not waiting.events:
            return
        self._waiting.append(waiting)
        if self._committer is None or self._committer.done():
            self._committer = asyncio.create_task(self._commit_all(), name="projector")
        await waiting.done

    async def close(self) -> None:
        """Waits until all that was handed over is committed or refused."""
        if self._committer is not None:
            await self._committer

    async def _commit_all(self) -> None:
        while self._waiting:
            batch = self._take()
            try:
                await self._commit(batch)
            except Unavailable as error:
                _refuse(batch, error)
            except Exception:
                await self._commit_each(batch)

    def _take(self) -> list[_Waiting]:
        """The next callers in line, at least one, whose events fit into one transaction."""
        count = size = 0
        for waiting in self._waiting:
            size += len(waiting.events)
            if count and size > _LARGEST_BATCH:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return [waiting for waiting in batch if not waiting.done.cancelled()]

    async def _commit_each(self, batch: list[_Waiting]) -> None:
        """One of the batch can't be stored, and the others must not suffer for it."""
        for index, waiting in enumerate(batch):
            try:
                await self._commit([waiting])
            except Unavailable as error:
                _refuse(batch[index:], error)
                return
            except Exception as error:
                _refuse([waiting], error)

    async def _commit(self, batch: list[_Waiting]) -> None:
        async with self._database.transaction() as connection:
            await project(connection, (event for waiting in batch for event in waiting.events))
        for waiting in batch:
            if not waiting.done.done():
                waiting.done.set_result(None)


def _refuse(batch: list[_Waiting], error: Exception) -> None:
    """Each caller gets a refusal of its own, because raising one exception in many tasks mixes their tracebacks."""
    for waiting in batch:
        if not waiting.done.done():
            own = type(error)(error.code, error.message) if isinstance(error, AlmanacError) else error
            waiting.done.set_exception(own)
