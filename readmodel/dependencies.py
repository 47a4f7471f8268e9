"""Who waits for whom in a workspace, held still while somebody changes it.

A circle could be closed by two people at once, each adding an arrow that alone is harmless. So whoever adds or
removes one holds the workspace until the change is mirrored, and sees all arrows that others added before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from sqlalchemy import Text, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.schedule import ScheduleDefinition
from domain.values import Value
from readmodel.database import Database
from readmodel.tables import ALIVE, schedules
from readmodel.workspaces import lock


class Kin(Value):
    """The schedules that have parents, and the others that were asked for by id."""

    definitions: dict[str, ScheduleDefinition]

    @property
    def edges(self) -> dict[str, tuple[str, ...]]:
        return {each: definition.parents for each, definition in self.definitions.items()}

    @property
    def names(self) -> dict[str, str]:
        return {each: definition.name for each, definition in self.definitions.items()}


class Dependencies:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def held(self, workspace: str, ids: Collection[str]) -> AsyncIterator[tuple[Kin, AsyncConnection]]:
        """The dependencies of the workspace, which nobody else changes until the block ends, and the connection on
        which the change is to be mirrored: another one might not be had. Raises NotFound `workspace.not_found`."""
        # Those who wait here hold no connection meanwhile.
        turn = self._turns.setdefault(workspace, asyncio.Lock())
        async with turn, self._database.transaction() as connection:
            await lock(connection, workspace)
            yield await _kin(connection, workspace, ids), connection

    async def read(self, workspace: str, ids: Collection[str]) -> Kin:
        async with self._database.reading() as connection:
            return await _kin(connection, workspace, ids)


async def _kin(connection: AsyncConnection, workspace: str, ids: Collection[str]) -> Kin:
    definition = schedules.c.record["definition"]
    has_parents = or_(
        func.jsonb_typeof(definition["after_schedule_ids"]) == "array",
        func.jsonb_typeof(definition["after_schedule_id"]) == "string",
    )
    asked = select(schedules.c.schedule_id, cast(definition, Text).label("definition")).where(
        schedules.c.workspace == workspace, ALIVE, or_(has_parents, schedules.c.schedule_id.in_(ids))
    )
    rows = await connection.execute(asked)
    return Kin(definitions={r.schedule_id: ScheduleDefinition.model_validate_json(r.definition) for r in rows})
