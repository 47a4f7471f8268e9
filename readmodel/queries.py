"""What readers ask of the mirror. Every read names its workspace, and what belongs to another is not found.

A deleted schedule is not found either; its runs stay readable.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, DateTime, Select, Text, cast, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.errors import NotFound
from domain.names import name_key
from domain.run import OPEN_STATES, Origin, Run, RunState, TrailRow
from domain.schedule import Condition, ScheduleView
from readmodel.database import Database
from readmodel.paging import Page, check_limit, invalid_cursor, page_of, position_of
from readmodel.tables import ALIVE, IS_REVIEW, TIME, runs, schedules, trail

_SCHEDULE = cast(schedules.c.record, Text).label("record")
_RUN = cast(runs.c.record, Text).label("record")
_TRAIL_ROW = cast(trail.c.record, Text).label("record")


class Queries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def schedule(self, workspace: str, schedule_id: str) -> ScheduleView:
        """Raises NotFound `schedule.not_found`."""
        asked = select(_SCHEDULE).where(
            schedules.c.workspace == workspace, schedules.c.schedule_id == schedule_id, ALIVE
        )
        async with self._database.reading() as connection:
            record = await connection.scalar(asked)
        if record is None:
            raise NotFound("schedule.not_found", "There is no such schedule in this workspace.")
        return ScheduleView.model_validate_json(record)

    async def schedules(
        self,
        workspace: str,
        *,
        conditions: Collection[Condition] = (),
        prefix: str = "",
        search: str = "",
        target: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[ScheduleView]:
        """Schedules by name. `prefix` begins the name and `search` is anywhere in it, in any case; no condition
        means any. Raises Invalid `page.cursor_invalid` and `page.limit_invalid`."""
        listing = f"schedules/{workspace}"
        order = schedules.c.name_key, schedules.c.schedule_id
        asked = select(_SCHEDULE, *order).where(schedules.c.workspace == workspace, ALIVE)
        if conditions:
            asked = asked.where(schedules.c.condition.in_(conditions))
        if prefix:
            asked = asked.where(schedules.c.name_key.startswith(name_key(prefix), autoescape=True))
        if search:
            asked = asked.where(schedules.c.name_key.contains(name_key(search), autoescape=True))
        if target is not None:
            asked = asked.where(schedules.c.target == target)
        if cursor is not None:
            asked = asked.where(tuple_(*order) > tuple_(*position_of(listing, cursor, 2)))
        async with self._database.reading() as connection:
            found = await connection.execute(asked.order_by(*order).limit(check_limit(limit)))
            rows = [(ScheduleView.model_validate_json(r.record), (r.name_key, r.schedule_id)) for r in found]
        return page_of(listing, rows, limit)

    async def schedules_by_target(self, workspace: str, target: str) -> tuple[ScheduleView, ...]:
        """All schedules that run `target`, by name."""
        asked = (
            select(_SCHEDULE)
            .where(schedules.c.workspace == workspace, schedules.c.target == target, ALIVE)
            .order_by(schedules.c.name_key, schedules.c.schedule_id)
        )
        async with self._database.reading() as connection:
            return tuple(ScheduleView.model_validate_json(record) for record in await connection.scalars(asked))

    async def count_schedules(self, workspace: str) -> int:
        asked = select(func.count()).select_from(schedules).where(schedules.c.workspace == workspace, ALIVE)
        async with self._database.reading() as connection:
            return (await connection.execute(asked)).scalar_one()

    async def run(self, workspace: str, run_id: str) -> Run:
        """Raises NotFound `run.not_found`."""
        async with self._database.reading() as connection:
            return await _run(connection, workspace, run_id)

    async def runs_with_files(self, workspace: str, run_ids: Collection[str]) -> tuple[Run, ...]:
        """Those of these runs that there are and whose files have not expired, in no order."""
        if not run_ids:
            return ()
        not_expired = runs.c.record["files_expired_at"].astext.is_(None)
        asked = select(_RUN).where(runs.c.workspace == workspace, runs.c.run_id.in_(run_ids), not_expired)
        async with self._database.reading() as connection:
            return tuple(Run.model_validate_json(record) for record in await connection.scalars(asked))

    async def latest_with_files(self, workspace: str, pipeline: str, states: Collection[RunState]) -> Run | None:
        """The run of the pipeline that ended last in one of these states and whose files have not expired. Reviews by
        it are none of its runs."""
        record = runs.c.record
        asked = (
            select(_RUN)
            .where(runs.c.workspace == workspace, runs.c.state.in_(states))
            .where(record["prepared"]["pipeline"].astext == pipeline, record["run_folder"].astext.is_not(None))
            .where(record["files_expired_at"].astext.is_(None))
            .order_by(record["ended_at"].astext.cast(TIME).desc())
            .limit(1)
        )
        async with self._database.reading() as connection:
            found = await connection.scalar(asked)
        return None if found is None else Run.model_validate_json(found)

    async def reviews(self, workspace: str) -> tuple[Run, ...]:
        """The open runs that review another one, which they name as `evidence_run_id` in what they froze."""
        asked = select(_RUN).where(runs.c.workspace == workspace, runs.c.state.in_(OPEN_STATES), IS_REVIEW)
        async with self._database.reading() as connection:
            return tuple(Run.model_validate_json(record) for record in await connection.scalars(asked))

    async def reviews_of(self, workspace: str, run_id: str, limit: int = 20) -> tuple[Run, ...]:
        """The runs that review this one, or have reviewed it; the newest first."""
        reviewed = runs.c.record["prepared"]["evidence_run_id"].astext
        asked = select(_RUN).where(runs.c.workspace == workspace, IS_REVIEW, reviewed == run_id)
        async with self._database.reading() as connection:
            newest_first = asked.order_by(runs.c.recorded_at.desc()).limit(limit)
            return tuple(Run.model_validate_json(record) for record in await connection.scalars(newest_first))

    async def runs(
        self,
        workspace: str,
        *,
        schedule_id: str | None = None,
        states: Collection[RunState] = (),
        origins: Collection[Origin] = (),
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Run]:
        """Runs, the newest first by when they were recorded; no state and no origin means any. Raises Invalid
        `page.cursor_invalid` and `page.limit_invalid`."""
        listing = f"runs/{workspace}"
        asked = select(_RUN, runs.c.recorded_at, runs.c.run_id).where(runs.c.workspace == workspace)
        if schedule_id is not None:
            asked = asked.where(runs.c.schedule_id == schedule_id)
        if states:
            asked = asked.where(runs.c.state.in_(states))
        if origins:
            asked = asked.where(runs.c.origin.in_(origins))
        if cursor is not None:
            asked = asked.where(_older(*position_of(listing, cursor, 2)))
        newest_first: Select[tuple[str, datetime, str]] = asked.order_by(
            runs.c.recorded_at.desc(), runs.c.run_id.desc()
        )
        async with self._database.reading() as connection:
            found = await connection.execute(newest_first.limit(check_limit(limit)))
            rows = [(Run.model_validate_json(r.record), (r.recorded_at.isoformat(), r.run_id)) for r in found]
        return page_of(listing, rows, limit)

    async def occurrences_between(self, schedule_id: str, after: datetime, until: datetime) -> tuple[Run, ...]:
        """The runs of a schedule's occurrences due in `(after, until]`, earliest first."""
        due = runs.c.record["scheduled_for"].astext.cast(DateTime(timezone=True))
        recorded_since = runs.c.recorded_at > after  # nothing is recorded before it is due
        asked = select(_RUN).where(runs.c.schedule_id == schedule_id, recorded_since, due > after, due <= until)
        async with self._database.reading() as connection:
            found = (await connection.scalars(asked.order_by(due))).all()
        return tuple(Run.model_validate_json(record) for record in found)

    async def trail(self, workspace: str, run_id: str) -> tuple[TrailRow, ...]:
        """All that happened to a run, in order. Raises NotFound `run.not_found`."""
        asked = select(_TRAIL_ROW).where(trail.c.run_id == run_id).order_by(trail.c.seq)
        async with self._database.reading() as connection:
            await _run(connection, workspace, run_id)
            return tuple(TrailRow.model_validate_json(record) for record in await connection.scalars(asked))


async def _run(connection: AsyncConnection, workspace: str, run_id: str) -> Run:
    record = await connection.scalar(select(_RUN).where(runs.c.workspace == workspace, runs.c.run_id == run_id))
    if record is None:
        raise NotFound("run.not_found", "There is no such run in this workspace.")
    return Run.model_validate_json(record)


def _older(recorded_at: str, run_id: str) -> ColumnElement[bool]:
    try:
        instant = datetime.fromisoformat(recorded_at)
    except ValueError:
        raise invalid_cursor() from None
    return tuple_(runs.c.recorded_at, runs.c.run_id) < tuple_(instant, run_id)
