"""A run is claimed once, for ever, and only together with the record that it runs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import text

from domain import ids
from domain.errors import Invalid, NotFound, Unavailable
from domain.events import Event
from domain.run import Run, RunState, advance
from readmodel.claims import Claims, ClaimUnconfirmed
from readmodel.database import Database
from readmodel.queries import Queries
from readmodel.tables import ExecutionStatus
from tests.readmodel.samples import T0, WORKSPACE, a_run, told
from tests.readmodel.test_projector import UNSTORABLE_NAME

numbers = itertools.count()


@pytest.fixture(scope="module")
def claims(database: Database) -> Claims:
    return Claims(database)


@pytest.fixture
def run() -> Run:
    return a_run("s-claim", next(numbers))


def started(run: Run, worker: str = "w-1") -> tuple[Event, ...]:
    starting = advance(run, RunState.STARTING, T0, data={"worker": worker})
    return told(starting), told(advance(starting.run, RunState.RUNNING, T0))


async def claim(claims: Claims, run: Run, worker: str = "w-1", events: Sequence[Event] | None = None) -> bool:
    return await claims.claim(
        started(run, worker) if events is None else events,
        run_id=run.run_id,
        execution_id=ids.execution_id(run.run_id),
        worker=worker,
        timeout_seconds=5,
    )


async def void(claims: Claims, run: Run) -> str | None:
    """Who had claimed it, if anybody."""
    found = await claims.void(run_id=run.run_id, execution_id=ids.execution_id(run.run_id))
    return None if found is None else found.worker


async def test_a_claim_carries_the_record_that_it_runs(claims: Claims, queries: Queries, run: Run) -> None:
    assert await claim(claims, run)
    assert (await queries.run(WORKSPACE, run.run_id)).state is RunState.RUNNING
    assert [row.state for row in await queries.trail(WORKSPACE, run.run_id)] == [RunState.STARTING, RunState.RUNNING]
    execution = await claims.execution_of(run.run_id)
    assert execution is not None
    assert (execution.worker, execution.status) == ("w-1", ExecutionStatus.CLAIMED)


async def test_of_twenty_claimers_one_wins(claims: Claims, queries: Queries, run: Run) -> None:
    workers = [f"w-{n}" for n in range(20)]
    won = await asyncio.gather(*(claim(claims, run, worker) for worker in workers))
    winner = workers[won.index(True)]
    assert sum(won) == 1
    execution = await claims.execution_of(run.run_id)
    assert execution is not None
    assert execution.worker == winner
    assert (await queries.trail(WORKSPACE, run.run_id))[0].data == {"worker": winner}


async def test_the_winner_may_not_claim_again(claims: Claims, run: Run) -> None:
    assert await claim(claims, run)
    assert not await claim(claims, run)


async def test_no_record_no_claim(claims: Claims, queries: Queries, run: Run) -> None:
    bad = run.model_copy(update={"schedule_id": UNSTORABLE_NAME})
    with pytest.raises(Invalid):
        await claim(claims, run, events=started(bad))
    assert await claims.execution_of(run.run_id) is None
    with pytest.raises(NotFound):
        await queries.run(WORKSPACE, run.run_id)
    assert await claim(claims, run)


async def test_a_void_run_can_not_be_claimed(claims: Claims, queries: Queries, run: Run) -> None:
    assert await void(claims, run) is None
    assert await void(claims, run) is None
    assert not await claim(claims, run)
    with pytest.raises(NotFound):
        await queries.run(WORKSPACE, run.run_id)


async def test_a_claimed_run_can_not_be_voided(claims: Claims, run: Run) -> None:
    assert await claim(claims, run)
    assert await void(claims, run) == "w-1"
    execution = await claims.execution_of(run.run_id)
    assert execution is not None
    assert execution.status is ExecutionStatus.CLAIMED


async def test_void_and_claim_at_once_agree(claims: Claims, database: Database) -> None:
    for number in range(30):
        run = a_run("s-fence", number)
        won, claimed_by = await asyncio.gather(claim(claims, run), void(claims, run))
        assert won == (claimed_by == "w-1")


async def test_void_waits_for_a_claim_on_its_way(claims: Claims, database: Database, run: Run) -> None:
    insert = "INSERT INTO executions (execution_id, run_id, worker, status) VALUES (:e, :r, 'slow', 'claimed')"
    values = {"e": ids.execution_id(run.run_id), "r": run.run_id}
    async with database.transaction() as slow:
        await slow.execute(text(insert), values)
        voiding = asyncio.create_task(void(claims, run))
        await waits_for_a_lock(database)
        assert not voiding.done()
    assert await voiding == "slow"


async def test_a_claim_is_bounded_in_time(claims: Claims, database: Database, run: Run) -> None:
    async with database.transaction() as blocking:
        await blocking.execute(text("LOCK TABLE executions IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(Unavailable) as refusal:
            await claims.claim(started(run), run_id=run.run_id, execution_id="e", worker="w", timeout_seconds=0.2)
    assert refusal.value.code == "database.unavailable"
    assert await void(claims, run) is None


async def test_the_first_end_told_stays(claims: Claims, run: Run) -> None:
    await claim(claims, run)
    execution_id = ids.execution_id(run.run_id)
    end = T0 + timedelta(seconds=5)
    assert await claims.finish(
        execution_id, outcome=RunState.FAILED, at=end, reason="execution_failed", message="\x00!"
    )
    assert not await claims.finish(execution_id, outcome=RunState.SUCCEEDED, at=end)
    execution = await claims.execution_of(run.run_id)
    assert execution is not None
    assert (execution.status, execution.outcome, execution.ended_at) == (ExecutionStatus.ENDED, RunState.FAILED, end)
    assert (execution.reason, execution.message) == ("execution_failed", "\ufffd!")
    assert not await claims.finish("never claimed", outcome=RunState.SUCCEEDED, at=end)


async def waits_for_a_lock(database: Database) -> None:
    async with database.reading() as connection:
        asked = text("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        while (await connection.execute(asked)).first() is None:
            pass


@asynccontextmanager
async def commits_held(database: Database) -> AsyncIterator[None]:
    """A commit that has something to do with executions waits until the block ends."""
    setup = (
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER held AFTER INSERT ON executions DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW WHEN (NEW.worker IS NOT NULL) EXECUTE FUNCTION hold()",
    )
    async with database.transaction() as connection:
        for statement in setup:
            await connection.execute(text(statement))
    try:
        async with database.transaction() as holding:
            await holding.execute(text("SELECT pg_advisory_xact_lock(7)"))
            yield
    finally:
        async with database.transaction() as connection:
            await connection.execute(text("DROP TRIGGER held ON executions"))
            await connection.execute(text("DROP FUNCTION hold"))


async def test_a_claim_whose_commit_was_not_answered_is_in_doubt(claims: Claims, database: Database, run: Run) -> None:
    async with commits_held(database):
        with pytest.raises(ClaimUnconfirmed):
            await claims.claim(
                started(run),
                run_id=run.run_id,
                execution_id=ids.execution_id(run.run_id),
                worker="w",
                timeout_seconds=0.5,
            )
    assert await void(claims, run) in (None, "w")
