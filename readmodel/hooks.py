"""Webhooks: who may run a schedule by a signature. The secret is kept as it is, because a signature can't be checked
against anything less; it is answered once, when it is made."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, insert, select, update

from domain.errors import NotFound
from domain.values import Value
from readmodel import audit
from readmodel.database import Database
from readmodel.tables import hooks

OVERLAP = timedelta(hours=24)
"""So long after a rotation the former secret is good as well."""


class HookView(Value):
    hook_id: str
    schedule_id: str
    created_at: datetime
    created_by: str
    rotated_at: datetime | None
    former_until: datetime | None
    """Until when the secret before the last rotation is good as well."""


class KnownHook(NamedTuple):
    """What a delivery is checked against."""

    hook_id: str
    workspace: str
    schedule_id: str
    secrets: tuple[str, ...]


_SHOWN = [hooks.c[name] for name in HookView.model_fields]


class Hooks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, workspace: str, schedule_id: str, hook_id: str, secret: str, by: str) -> HookView:
        values = {"hook_id": hook_id, "workspace": workspace, "schedule_id": schedule_id, "secret": secret}
        return await self._change(
            insert(hooks).values(created_by=by, **values), "hook.create", workspace, schedule_id, hook_id, by
        )

    async def rotate(
        self, workspace: str, schedule_id: str, hook_id: str, secret: str, by: str, now: datetime
    ) -> HookView:
        """The former secret stays good for OVERLAP, the one before it no longer. Raises NotFound `hook.not_found`."""
        statement = (
            update(hooks)
            .where(_this(workspace, schedule_id, hook_id))
            .values(former_secret=hooks.c.secret, former_until=now + OVERLAP, secret=secret, rotated_at=now)
        )
        return await self._change(statement, "hook.rotate", workspace, schedule_id, hook_id, by)

    async def delete(self, workspace: str, schedule_id: str, hook_id: str, by: str) -> None:
        """Raises NotFound `hook.not_found`."""
        statement = delete(hooks).where(_this(workspace, schedule_id, hook_id))
        await self._change(statement, "hook.delete", workspace, schedule_id, hook_id, by)

    async def of_schedule(self, workspace: str, schedule_id: str) -> tuple[HookView, ...]:
        mine = (hooks.c.workspace == workspace) & (hooks.c.schedule_id == schedule_id)
        async with self._database.reading() as connection:
            found = await connection.execute(select(*_SHOWN).where(mine).order_by(hooks.c.created_at, hooks.c.hook_id))
            return tuple(HookView.model_validate(dict(row._mapping)) for row in found)

    async def known(self, hook_id: str, now: datetime) -> KnownHook | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(select(hooks).where(hooks.c.hook_id == hook_id))).first()
        if row is None:
            return None
        former = (row.former_secret,) if row.former_until is not None and now < row.former_until else ()
        return KnownHook(row.hook_id, row.workspace, row.schedule_id, (row.secret, *former))

    async def _change(
        self, statement: Any, action: str, workspace: str, schedule_id: str, hook_id: str, by: str
    ) -> HookView:
        subjects = {"schedule_id": schedule_id, "hook_id": hook_id}
        async with self._database.transaction() as connection:
            row = (await connection.execute(statement.returning(*_SHOWN))).first()
            if row is None:
                raise NotFound("hook.not_found", "The schedule has no such webhook.")
            await audit.append(connection, by=by, action=action, workspace=workspace, subjects=subjects)
        return HookView.model_validate(dict(row._mapping))


def _this(workspace: str, schedule_id: str, hook_id: str) -> ColumnElement[bool]:
    return (hooks.c.workspace == workspace) & (hooks.c.schedule_id == schedule_id) & (hooks.c.hook_id == hook_id)
