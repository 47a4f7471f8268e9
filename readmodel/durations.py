"""How long schedules' runs usually take."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import DateTime, extract, func, select

from readmodel.database import Database
from readmodel.tables import runs

RECENT = 100
"""Runs of each schedule that count, the latest."""


async def usual(database: Database, schedule_ids: Collection[str]) -> dict[str, timedelta]:
    """The 95th percentile of each schedule's latest runs from start to end; a schedule of which none has ended is
    left out."""
    started, ended = (runs.c.record[name].astext.cast(DateTime(timezone=True)) for name in ("started_at", "ended_at"))
    lasted = (
        select(
            runs.c.schedule_id,
            extract("epoch", ended - started).label("seconds"),
            func.row_number().over(partition_by=runs.c.schedule_id, order_by=runs.c.recorded_at.desc()).label("number"),
        )
        .where(runs.c.schedule_id.in_(schedule_ids), started.is_not(None), ended.is_not(None))
        .subquery()
    )
    p95 = func.percentile_cont(0.95).within_group(lasted.c.seconds)
    asked = select(lasted.c.schedule_id, p95).where(lasted.c.number <= RECENT).group_by(lasted.c.schedule_id)
    async with database.reading() as connection:
        return {
            schedule_id: timedelta(seconds=float(seconds)) for schedule_id, seconds in await connection.execute(asked)
        }
