"""Workspaces: the isolation unit. Everything else belongs to exactly one."""

from __future__ import annotations

import re

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.errors import Invalid, NotFound
from domain.values import Value
from readmodel import audit
from readmodel.database import Database
from readmodel.tables import workspaces

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class Workspace(Value):
    name: str
    active: bool
    """An inactive workspace fires nothing."""


class Workspaces:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def ensure(self, name: str) -> Workspace:
        """The workspace of this name, made if need be. Raises Invalid `workspace.name_invalid`."""
        if not NAME.fullmatch(name):
            raise Invalid(
                "workspace.name_invalid",
                "A workspace's name is 1 to 63 lower-case letters, digits, '-' and '_', the first a letter or digit.",
                field="workspace",
            )
        async with self._database.transaction() as connection:
            await connection.execute(insert(workspaces).values(name=name).on_conflict_do_nothing())
        return await self.require(name)

    async def set_active(self, name: str, active: bool, by: str) -> Workspace:
        """Raises NotFound `workspace.not_found`. Leaves a row in the audit."""
        await self.require(name)
        async with self._database.transaction() as connection:
            await connection.execute(update(workspaces).where(workspaces.c.name == name).values(active=active))
            action = "workspace.activate" if active else "workspace.deactivate"
            await audit.append(connection, by=by, action=action, workspace=name, subjects={"workspace": name})
        return Workspace(name=name, active=active)

    async def is_active(self, name: str) -> bool:
        """One that was never made was never made inactive either."""
        async with self._database.reading() as connection:
            active = await connection.scalar(select(workspaces.c.active).where(workspaces.c.name == name))
        return active is not False

    async def require(self, name: str) -> Workspace:
        """Raises NotFound `workspace.not_found`."""
        if not NAME.fullmatch(name):
            raise _not_found()
        async with self._database.reading() as connection:
            row = (await connection.execute(select(workspaces).where(workspaces.c.name == name))).first()
        if row is None:
            raise _not_found()
        return Workspace(name=row.name, active=row.active)


async def lock(connection: AsyncConnection, name: str) -> None:
    """One at a time: holds the workspace's row until the transaction ends. Raises NotFound
    `workspace.not_found`."""
    row = select(workspaces.c.name).where(workspaces.c.name == name).with_for_update(key_share=True)
    if not NAME.fullmatch(name) or (await connection.execute(row)).first() is None:
        raise _not_found()


def _not_found() -> NotFound:
    return NotFound("workspace.not_found", "There is no such workspace.")
