"""Whatever the order, repetition and grouping in which events arrive, the newest value of each thing remains."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import NotFound
from domain.events import Event
from domain.run import RunState, advance, record, seize
from domain.schedule import Condition
from readmodel.database import Database
from readmodel.projection import project
from readmodel.queries import Queries
from tests.readmodel.samples import T0, WORKSPACE, a_run, schedule_changed, schedule_view, told, whole_life

fresh = itertools.count()


async def apply(database: Database, *batches: list[Event]) -> None:
    for batch in batches:
        async with database.transaction() as connection:
            await project(connection, batch)


async def test_values_come_back_as_they_arrived(database: Database, queries: Queries) -> None:
    view, run = schedule_view("s-whole", seq=7), a_run("s-whole")
    life = whole_life(run)
    await apply(database, [schedule_changed("s-whole", seq=7), *life])
    assert await queries.schedule(WORKSPACE, "s-whole") == view
    assert await queries.run(WORKSPACE, run.run_id) == life[-1].change.run
    assert await queries.trail(WORKSPACE, run.run_id) == tuple(event.change.trail for event in life)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
async def test_order_repetition_and_grouping_do_not_matter(
    database: Database, queries: Queries, data: st.DataObject
) -> None:
    name = f"s-any-{next(fresh)}"
    life = whole_life(a_run(name))
    views = [schedule_changed(name, seq=seq, revision=seq) for seq in range(1, 5)]
    told_once: list[Event] = [*life, *views]
    repeated = data.draw(st.lists(st.sampled_from(told_once), max_size=6), label="repeated")
    arrival = data.draw(st.permutations(told_once + repeated), label="arrival")
    cuts = sorted(data.draw(st.sets(st.integers(1, len(arrival) - 1)), label="cuts"))
    await apply(database, *(arrival[a:b] for a, b in itertools.pairwise([0, *cuts, len(arrival)])))
    assert await queries.run(WORKSPACE, a_run(name).run_id) == life[-1].change.run
    assert await queries.trail(WORKSPACE, a_run(name).run_id) == tuple(event.change.trail for event in life)
    assert (await queries.schedule(WORKSPACE, name)).revision == 4


async def test_a_late_event_never_overwrites_a_newer(database: Database, queries: Queries) -> None:
    life = whole_life(a_run("s-late"))
    await apply(database, [life[-1], schedule_changed("s-late", seq=9)])
    await apply(database, [*life[:-1], schedule_changed("s-late", seq=8, paused=True)])
    assert (await queries.run(WORKSPACE, a_run("s-late").run_id)).state is RunState.SUCCEEDED
    assert not (await queries.schedule(WORKSPACE, "s-late")).paused


async def test_an_equal_number_changes_nothing(database: Database, queries: Queries) -> None:
    first = record(a_run("s-equal"))
    other = first.model_copy(
        update={
            "run": first.run.model_copy(update={"message": "other"}),
            "trail": first.trail.model_copy(update={"message": "other"}),
        }
    )
    await apply(database, [told(first)], [told(other)])
    assert (await queries.run(WORKSPACE, first.run.run_id)).message is None
    assert [row.message for row in await queries.trail(WORKSPACE, first.run.run_id)] == [None]


async def test_numbers_beyond_32_bits(database: Database, queries: Queries) -> None:
    run = seize(seize(seize(a_run("s-seized"))))
    lost = advance(run, RunState.UNKNOWN, T0, reason="instance_lost")
    await apply(database, [told(lost)])
    assert (await queries.run(WORKSPACE, run.run_id)).seq == 3_000_000_001


async def test_a_large_batch_is_one_batch(database: Database, queries: Queries) -> None:
    lives = [whole_life(a_run("s-many", number)) for number in range(400)]
    await apply(database, [event for life in lives for event in life])
    page = await queries.runs(WORKSPACE, schedule_id="s-many", limit=500)
    assert len(page.items) == 400
    assert {run.state for run in page.items} == {RunState.SUCCEEDED}


async def test_what_can_not_be_stored_is_replaced_visibly(database: Database, queries: Queries) -> None:
    ended = advance(
        advance(advance(a_run("s-nul"), RunState.STARTING, T0).run, RunState.RUNNING, T0).run,
        RunState.FAILED,
        T0 + timedelta(seconds=1),
        message="bad\x00byte, half \ud83d of a pair, and a literal \\u0000",
        data={"key\x00": [1.5, float("nan"), {"deep": "\x00"}]},
    )
    await apply(database, [told(ended), schedule_changed("s-nul", name="nul\x00")])
    read = await queries.run(WORKSPACE, ended.run.run_id)
    assert read.message == "bad\ufffdbyte, half \ufffd of a pair, and a literal \\u0000"
    (row,) = await queries.trail(WORKSPACE, ended.run.run_id)
    assert row.data == {"key\ufffd": [1.5, "nan", {"deep": "\ufffd"}]}
    assert (await queries.schedule(WORKSPACE, "s-nul")).definition.name == "nul\ufffd"


async def test_a_deleted_schedule_is_gone_and_its_runs_stay(database: Database, queries: Queries) -> None:
    run = a_run("s-gone")
    await apply(database, [schedule_changed("s-gone"), told(record(run))])
    await apply(database, [schedule_changed("s-gone", seq=2, condition=Condition.DELETED)])
    with pytest.raises(NotFound, match="no such schedule"):
        await queries.schedule(WORKSPACE, "s-gone")
    assert (await queries.runs(WORKSPACE, schedule_id="s-gone")).items == (run,)
