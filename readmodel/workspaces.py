"""Workspaces: the isolation unit. Everything else belongs to exactly one."""

from __future__ import annotations

import re

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.errors import Conflict, Invalid, NotFound
from domain.workspace import Posture, Workspace
from readmodel import audit
from readmodel.database import Database
from readmodel.tables import pipelines, workspaces

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


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
        async with self._database.transaction() as connection:
            await lock(connection, name)
            await connection.execute(update(workspaces).where(workspaces.c.name == name).values(active=active))
            action = "workspace.activate" if active else "workspace.deactivate"
            await audit.append(connection, by=by, action=action, workspace=name, subjects={"workspace": name})
        return await self.require(name)

    async def set_posture(self, name: str, posture: Posture, by: str) -> Workspace:
        """The same again changes nothing. Raises NotFound `workspace.not_found`, and Conflict
        `workspace.drafts_current` while a pipeline's current pointer is at what the posture does not allow."""
        async with self._database.transaction() as connection:
            if await lock(connection, name) is not posture:
                if posture is not Posture.DEVELOPMENT:
                    await _refuse_current_drafts(connection, name)
                await connection.execute(update(workspaces).where(workspaces.c.name == name).values(posture=posture))
                subjects = {"workspace": name, "posture": posture.value}
                await audit.append(connection, by=by, action="workspace.posture", workspace=name, subjects=subjects)
        return await self.require(name)

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
        return Workspace(name=row.name, active=row.active, posture=row.posture)


async def lock(connection: AsyncConnection, name: str) -> Posture:
    """One at a time: holds the workspace's row until the transaction ends, and answers its posture. Raises NotFound
    `workspace.not_found`."""
    asked = select(workspaces.c.posture).where(workspaces.c.name == name).with_for_update(key_share=True)
    found = await connection.scalar(asked) if NAME.fullmatch(name) else None
    if found is None:
        raise _not_found()
    return Posture(found)


async def _refuse_current_drafts(connection: AsyncConnection, name: str) -> None:
    mine = (pipelines.c.workspace == name) & pipelines.c.current_is_draft & pipelines.c.discarded_at.is_(None)
    found = list(await connection.scalars(select(pipelines.c.name).where(mine).order_by(pipelines.c.name).limit(20)))
    if found:
        raise Conflict(
            "workspace.drafts_current",
            f"The draft is what runs of: {', '.join(found)}. In production only released versions run.",
            hint="Release these pipelines, or move their current pointers to released versions, then try again.",
        )


def _not_found() -> NotFound:
    return NotFound("workspace.not_found", "There is no such workspace.")
