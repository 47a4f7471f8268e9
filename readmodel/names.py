"""Names of schedules: unique in their workspace, in any case, while the schedule lives.

A name is reserved before the schedule's workflow is created or renamed. If the reserver dies in between, the
reservation lapses by itself; once the schedule is mirrored, its row holds the name.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, exists, func, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.errors import Conflict, Invalid
from domain.names import name_key
from readmodel.database import Database
from readmodel.tables import ALIVE, schedule_names, schedules
from readmodel.text import refuse_unstorable
from readmodel.workspaces import lock

RESERVED_FOR = timedelta(seconds=60)
"""How long a name is kept for a schedule that has not appeared under it."""

LONGEST_NAME = 500
"""Characters. Longer keys would not fit the index."""


class Names:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(self, workspace: str, name: str, schedule_id: str, *, max_schedules: int) -> str:
        """Keeps `name` for this schedule and returns its owner, `schedule_id`. The same schedule may ask again.

        Raises Conflict `schedule.name_taken` (details: `schedule_id` of the owner), Conflict `schedule.limit_reached`
        when the schedule is new and the workspace has `max_schedules` already, Invalid for a name that can't be
        stored and NotFound `workspace.not_found`.
        """
        _refuse_unusable(name)
        async with self._database.transaction() as connection:
            await lock(connection, workspace)
            owner = await _owner(connection, workspace, name)
            if owner not in (None, schedule_id):
                raise Conflict(
                    "schedule.name_taken",
                    f"Another schedule of this workspace is named '{name}'; names differ by more than case.",
                    field="name",
                    schedule_id=owner,
                )
            await _check_limit(connection, workspace, schedule_id, max_schedules)
            await connection.execute(_keep(workspace, name, schedule_id))
        return schedule_id

    async def release(self, workspace: str, name: str, schedule_id: str) -> None:
        """Gives a name up, after a delete, a rename or a refused creation. Somebody else's name stays."""
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(schedule_names).where(
                    schedule_names.c.workspace == workspace,
                    schedule_names.c.name_key == name_key(name),
                    schedule_names.c.schedule_id == schedule_id,
                )
            )


_FRESH = schedule_names.c.reserved_at > func.now() - RESERVED_FOR
_APPEARED = exists().where(schedules.c.schedule_id == schedule_names.c.schedule_id)
_GONE = exists().where(schedules.c.schedule_id == schedule_names.c.schedule_id, ~ALIVE)


async def _owner(connection: AsyncConnection, workspace: str, name: str) -> str | None:
    """The live schedule of this name, else the one that holds a reservation which has not lapsed."""
    key = name_key(name)
    living = select(schedules.c.schedule_id).where(
        schedules.c.workspace == workspace, schedules.c.name_key == key, ALIVE
    )
    reserved = select(schedule_names.c.schedule_id).where(
        schedule_names.c.workspace == workspace, schedule_names.c.name_key == key, _FRESH, ~_GONE
    )
    owner: str | None = (await connection.execute(living)).scalars().first()
    return owner or (await connection.execute(reserved)).scalars().first()


async def _check_limit(connection: AsyncConnection, workspace: str, schedule_id: str, max_schedules: int) -> None:
    """Counts the live schedules and those whose reservation says that they are about to be."""
    known = select(schedules.c.schedule_id).where(schedules.c.schedule_id == schedule_id, ALIVE)
    if (await connection.execute(known)).first() is not None:
        return
    living = select(func.count()).where(schedules.c.workspace == workspace, ALIVE).scalar_subquery()
    coming = select(func.count(schedule_names.c.schedule_id.distinct())).where(
        schedule_names.c.workspace == workspace, schedule_names.c.schedule_id != schedule_id, _FRESH, ~_APPEARED
    )
    if (await connection.execute(select(living + coming.scalar_subquery()))).scalar_one() >= max_schedules:
        raise Conflict(
            "schedule.limit_reached",
            f"This workspace has {max_schedules} schedules, the most it may have; delete one first.",
        )


def _keep(workspace: str, name: str, schedule_id: str) -> Insert:
    key = {"workspace": workspace, "name_key": name_key(name)}
    held = {"schedule_id": schedule_id, "reserved_at": func.now()}
    return insert(schedule_names).values(**key, **held).on_conflict_do_update(index_elements=[*key], set_=held)


def _refuse_unusable(name: str) -> None:
    refuse_unstorable(name, "name")
    if len(name) > LONGEST_NAME:
        raise Invalid(
            "schedule.validation.name_too_long",
            f"A schedule's name has at most {LONGEST_NAME} characters.",
            field="name",
        )
