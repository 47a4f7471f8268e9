"""Who waits for whom in a workspace, held still while somebody changes it.

A circle could be closed by two people at once, each adding an arrow that alone is harmless. So whoever adds or
removes one holds the workspace until the change is mirrored, and sees all arrows that others added before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from sqlalchemy import Text, cast, func, or_, select

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

    @asynccontextmanager
    async def held(self, workspace: str, ids: Collection[str]) -> AsyncIterator[Kin]:
        """The dependencies of the workspace, which nobody else changes meanwhile. Raises NotFound
        `workspace.not_found`."""
        definition = schedules.c.record["definition"]
        has_parents = or_(
            func.jsonb_typeof(definition["after_schedule_ids"]) == "array",
            func.jsonb_typeof(definition["after_schedule_id"]) == "string",
        )
        asked = select(schedules.c.schedule_id, cast(definition, Text).label("definition")).where(
            schedules.c.workspace == workspace, ALIVE, or_(has_parents, schedules.c.schedule_id.in_(ids))
        )
        async with self._database.transaction() as connection:
            await lock(connection, workspace)
            rows = await connection.execute(asked)
            yield Kin(definitions={r.schedule_id: ScheduleDefinition.model_validate_json(r.definition) for r in rows})
