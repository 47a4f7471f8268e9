"""Callers that project at once share transactions and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sqlalchemy import text

from domain.errors import Invalid, Unavailable
from domain.run import record
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from tests.readmodel.samples import WORKSPACE, a_run, schedule_changed, told, whole_life

# Text this random can't be compressed into an index's limit.
UNSTORABLE_NAME = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(4000))


async def transactions_of(database: Database, schedule_id: str) -> int:
    """How many transactions wrote the schedule's runs."""
    asked = text("SELECT count(DISTINCT xmin::text) FROM runs WHERE schedule_id = :s").bindparams(s=schedule_id)
    async with database.reading() as connection:
        return int((await connection.execute(asked)).scalar_one())


async def test_a_herd_is_committed_together(database: Database, projector: Projector, queries: Queries) -> None:
    herd = [whole_life(a_run("s-herd", number))[:3] for number in range(300)]
    await asyncio.gather(*(projector.project(events) for events in herd))
    assert len((await queries.runs(WORKSPACE, schedule_id="s-herd", limit=500)).items) == 300
    assert 1 < await transactions_of(database, "s-herd") <= 3


async def test_it_is_visible_when_the_call_returns(projector: Projector, queries: Queries) -> None:
    for seq in range(1, 20):
        await projector.project([schedule_changed("s-seen", seq=seq)])
        assert (await queries.schedule(WORKSPACE, "s-seen")).seq == seq


async def test_one_that_can_not_be_stored_fails_alone(projector: Projector, queries: Queries) -> None:
    poison = projector.project([schedule_changed("s-poison", name=UNSTORABLE_NAME)])
    others = [projector.project([schedule_changed(f"s-beside-{n}")]) for n in range(10)]
    answers = await asyncio.gather(*others[:5], poison, *others[5:], return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * 5 + [Invalid] + [type(None)] * 5
    assert all([(await queries.schedule(WORKSPACE, f"s-beside-{n}")).seq == 1 for n in range(10)])


async def test_each_caller_gets_its_own_refusal(empty_database: Callable[[], Awaitable[str]]) -> None:
    without_tables = Database(await empty_database())
    projector = Projector(without_tables)
    told_twice = [projector.project([told(record(a_run("s-none", n)))]) for n in range(3)]
    first, *others = await asyncio.gather(*told_twice, return_exceptions=True)
    assert isinstance(first, Unavailable)
    assert first.code == "database.schema_missing"
    assert all(isinstance(other, Unavailable) and other is not first for other in others)
    await without_tables.close()


async def test_a_cancelled_caller_leaves_the_others(projector: Projector, queries: Queries) -> None:
    calls = [asyncio.create_task(projector.project([told(record(a_run("s-cancel", n)))])) for n in range(5)]
    await asyncio.sleep(0)
    calls[0].cancel()
    calls[3].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [n for n, answer in enumerate(answers) if answer is None] == [1, 2, 4]
    kept = {run.run_id for run in (await queries.runs(WORKSPACE, schedule_id="s-cancel")).items}
    assert {a_run("s-cancel", n).run_id for n in (1, 2, 4)} <= kept


async def test_no_events_need_no_database() -> None:
    await Projector(Database("postgresql+asyncpg://nobody@127.0.0.1:1/none")).project([])


async def test_close_waits_for_what_was_handed_over(database: Database, queries: Queries) -> None:
    projector = Projector(database)
    call = asyncio.create_task(projector.project([schedule_changed("s-closing")]))
    await asyncio.sleep(0)
    await projector.close()
    assert (await queries.schedule(WORKSPACE, "s-closing")).seq == 1
    await call
