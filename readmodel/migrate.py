"""Brings a database to this version's tables, and says how far it is. Everything happens in one transaction
behind one lock, so an upgrade that is interrupted leaves nothing and two that start at once are one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, select

from domain.errors import Unavailable
from readmodel.database import answering, open_engine

_MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADE_SECONDS = 600.0
"""For one statement, the wait for another upgrade included."""

_LOCK = 7_305_041_953_228_106_541
"""Any number that nobody else uses for an advisory lock."""


class SchemaState(StrEnum):
    CURRENT = "current"
    BEHIND = "behind"
    """`upgrade` mends it."""
    NEWER = "newer"
    """A later version of Almanac was here."""


async def upgrade(url: str) -> None:
    """Raises Unavailable: `database.schema_newer` for tables of a later version, which are left alone,
    `database.unavailable` when the server does not answer."""
    engine = open_engine(url, command_seconds=_UPGRADE_SECONDS)
    try:
        with answering():
            async with engine.begin() as connection:
                await connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
                await connection.run_sync(_upgrade)
    finally:
        await engine.dispose()


async def check(url: str) -> SchemaState:
    """How the tables compare with this version. Raises Unavailable `database.unavailable`."""
    engine = open_engine(url)
    try:
        with answering():
            async with engine.connect() as connection:
                return await connection.run_sync(_state)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection) -> None:
    state = _state(connection)
    if state is SchemaState.NEWER:
        raise Unavailable(
            "database.schema_newer",
            f"The database has the tables of a later version of Almanac (revision {_revision(connection)}); "
            "start that version, or use another database.",
        )
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, "head")


def _state(connection: Connection) -> SchemaState:
    revision, script = _revision(connection), _script()
    if revision == script.get_current_head():
        return SchemaState.CURRENT
    known = {known.revision for known in script.walk_revisions()}
    return SchemaState.BEHIND if revision is None or revision in known else SchemaState.NEWER


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _script() -> ScriptDirectory:
    return ScriptDirectory(str(_MIGRATIONS))
