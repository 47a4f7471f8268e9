"""A database that is down, killed, frozen or not there: one refusal each, and it heals by itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from domain.errors import Invalid, NotFound, Unavailable
from domain.run import record
from embedded.postgres import PostgresServer
from readmodel import migrate
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from tests.readmodel.samples import WORKSPACE, a_run, schedule_changed, told


async def refusal_of(call: Awaitable[object]) -> Unavailable:
    with pytest.raises(Unavailable) as refusal:
        await call
    assert "\n" not in refusal.value.message
    return refusal.value


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[PostgresServer]:
    """One that the test may kill."""
    server = PostgresServer(tmp_path)
    await server.start()
    await migrate.upgrade(server.url)
    yield server
    await server.stop()


async def test_a_killed_server_is_refused_and_heals(server: PostgresServer) -> None:
    database = Database(server.url)
    projector, queries, claims = Projector(database), Queries(database), Claims(database)
    await asyncio.gather(*(projector.project([schedule_changed(f"s-{n}")]) for n in range(20)))
    run = a_run("s-1")

    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    for call in (
        projector.project([told(record(run))]),
        queries.schedule(WORKSPACE, "s-1"),
        claims.claim([], run_id=run.run_id, execution_id="e-1", worker="w", timeout_seconds=5),
    ):
        assert (await refusal_of(call)).code == "database.unavailable"
    assert not await database.healthy()

    await server.start()
    assert await database.healthy()
    assert (await queries.schedule(WORKSPACE, "s-1")).seq == 1
    await projector.project([told(record(run))])
    assert await queries.run(WORKSPACE, run.run_id) == run
    assert await claims.claim([], run_id=run.run_id, execution_id="e-1", worker="w", timeout_seconds=5)
    await database.close()


async def test_a_frozen_server_is_given_up_in_time(server: PostgresServer) -> None:
    database = Database(server.url)
    async with database.reading() as connection:
        backend = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    assert server.pid is not None
    frozen = (server.pid, backend)
    for process in frozen:
        os.kill(process, signal.SIGSTOP)
    try:
        claim = Claims(database).claim([], run_id="r", execution_id="e", worker="w", timeout_seconds=0.5)
        assert (await refusal_of(claim)).code == "database.unavailable"
    finally:
        for process in frozen:
            os.kill(process, signal.SIGCONT)
    assert await database.healthy()
    await database.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://almanac@127.0.0.1:1/none",
        "postgresql+asyncpg://almanac@/none?host=/nowhere",
    ],
)
async def test_a_server_that_is_not_there(url: str) -> None:
    database = Database(url)
    assert (await refusal_of(Queries(database).count_schedules(WORKSPACE))).code == "database.unavailable"
    assert not await database.healthy()
    await database.close()


async def test_a_database_that_is_not_there(postgres: PostgresServer) -> None:
    database = Database(make_url(postgres.url).set(database="nowhere").render_as_string(hide_password=False))
    refusal = await refusal_of(Queries(database).count_schedules(WORKSPACE))
    assert refusal.code == "database.unavailable"
    assert 'database "nowhere" does not exist' in refusal.message
    await database.close()


async def test_a_database_without_tables(empty_database: Callable[[], Awaitable[str]]) -> None:
    database = Database(await empty_database())
    refusal = await refusal_of(Queries(database).count_schedules(WORKSPACE))
    assert refusal.code == "database.schema_missing"
    await database.close()


async def test_a_restart_between_two_calls_costs_no_refusal(database_url: str) -> None:
    database, operator = Database(database_url), Database(database_url)
    assert await Queries(database).count_schedules(WORKSPACE) == 0
    cut_all = text(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with operator.reading() as connection:
        assert True in (await connection.scalars(cut_all)).all()
    assert await Queries(database).count_schedules(WORKSPACE) == 0
    await database.close()
    await operator.close()


async def test_all_connections_taken_is_a_wait_and_no_failure(database: Database) -> None:
    async def hold() -> int:
        async with database.transaction() as connection:
            return int((await connection.execute(text("SELECT 1"))).scalar_one())

    assert sum(await asyncio.gather(*(hold() for _ in range(100)))) == 100


async def test_a_refusal_rolls_back_and_passes_unchanged(database: Database) -> None:
    async def halfway() -> None:
        async with database.transaction() as connection:
            await connection.execute(text("INSERT INTO workspaces (name) VALUES ('halfway')"))
            raise NotFound("none", "none")

    with pytest.raises(NotFound):
        await halfway()
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT 1 FROM workspaces WHERE name = 'halfway'"))).first() is None


async def test_a_defect_is_not_called_an_outage(database: Database) -> None:
    with pytest.raises(Exception, match="nonsense") as defect:
        async with database.reading() as connection:
            await connection.execute(text("SELECT nonsense"))
    assert not isinstance(defect.value, Unavailable)


@pytest.mark.parametrize("asked", ["nul\x00", "half \ud800"])
async def test_text_that_no_column_holds_is_the_callers_mistake(queries: Queries, asked: str) -> None:
    for call in (
        queries.schedule(WORKSPACE, asked),
        queries.runs(WORKSPACE, schedule_id=asked),
        queries.schedules(WORKSPACE, search=asked),
        queries.trail(asked, asked),
    ):
        with pytest.raises(Invalid) as refusal:
            await call
        assert refusal.value.code == "database.value_invalid"
