"""Who did what: one row for every write. It holds ids, the revision and counts, never values, addresses or
secrets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.values import Value
from readmodel.database import Database
from readmodel.paging import Page, check_limit, invalid_cursor, page_of, position_of
from readmodel.tables import audit
from readmodel.text import storable


class AuditRow(Value):
    number: int
    at: datetime
    by: str
    action: str
    """Such as `schedule.pause`."""
    workspace: str
    subjects: dict[str, str]
    """The ids of what was acted on, such as `{"schedule_id": …}`."""
    revision: int | None
    counts: dict[str, int]


class Audit:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, workspace: str, *, cursor: str | None = None, limit: int = 50) -> Page[AuditRow]:
        """The newest first. Raises Invalid `page.cursor_invalid` and `page.limit_invalid`."""
        listing = f"audit/{workspace}"
        asked = select(audit).where(audit.c.workspace == workspace)
        if cursor is not None:
            asked = asked.where(audit.c.number < _number(*position_of(listing, cursor, 1)))
        async with self._database.reading() as connection:
            found = await connection.execute(asked.order_by(audit.c.number.desc()).limit(check_limit(limit)))
            rows = [(AuditRow.model_validate(dict(row._mapping)), (str(row.number),)) for row in found]
        return page_of(listing, rows, limit)


async def append(
    connection: AsyncConnection,
    *,
    by: str,
    action: str,
    workspace: str,
    subjects: Mapping[str, str],
    revision: int | None = None,
    counts: Mapping[str, int] | None = None,
) -> None:
    """Adds a row in the caller's transaction, so that a write to the database and its audit row are one."""
    row = {
        "by": by,
        "action": action,
        "workspace": workspace,
        "subjects": dict(subjects),
        "revision": revision,
        "counts": dict(counts or {}),
    }
    await connection.execute(insert(audit).values(storable(row)))


def _number(position: str) -> int:
    try:
        return int(position)
    except ValueError:
        raise invalid_cursor() from None
