"""Migrations make exactly the tables that the code uses, once, and leave a newer database alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from domain.errors import Unavailable
from readmodel import migrate
from readmodel.database import Database
from readmodel.migrate import SchemaState
from readmodel.tables import metadata

MakeDatabase = Callable[[], Awaitable[str]]


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_server_default": True, "compare_type": True})
    return list(compare_metadata(context, metadata))


async def test_migrations_and_tables_agree(empty_database: MakeDatabase) -> None:
    url = await empty_database()
    await migrate.upgrade(url)
    database = Database(url)
    async with database.transaction() as connection:
        assert await connection.run_sync(differences) == []
        collations = text(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND collation_name = 'C'"
        )
        sorted_columns = {(row.table_name, row.column_name) for row in await connection.execute(collations)}
        predicate = await connection.scalar(text("SELECT pg_get_indexdef('schedules_by_name'::regclass)"))
    await database.close()
    assert sorted_columns == {
        (table.name, column.name)
        for table in metadata.tables.values()
        for column in table.columns
        if getattr(column.type, "collation", None) == "C"
    }
    assert "deleted" in str(predicate)


async def test_it_tells_how_far_a_database_is(empty_database: MakeDatabase) -> None:
    url = await empty_database()
    assert await migrate.check(url) is SchemaState.BEHIND
    await migrate.upgrade(url)
    assert await migrate.check(url) is SchemaState.CURRENT
    await migrate.upgrade(url)
    assert await migrate.check(url) is SchemaState.CURRENT


async def test_a_newer_database_is_left_alone(empty_database: MakeDatabase) -> None:
    url = await empty_database()
    await migrate.upgrade(url)
    database = Database(url)
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert await migrate.check(url) is SchemaState.NEWER
    with pytest.raises(Unavailable) as refusal:
        await migrate.upgrade(url)
    assert refusal.value.code == "database.schema_newer"
    assert "9999" in refusal.value.message
    async with database.reading() as connection:
        assert await connection.scalar(text("SELECT version_num FROM alembic_version")) == "9999"
    await database.close()


async def test_upgrades_that_start_at_once_are_one(empty_database: MakeDatabase) -> None:
    url = await empty_database()
    await asyncio.gather(*(migrate.upgrade(url) for _ in range(5)))
    assert await migrate.check(url) is SchemaState.CURRENT
