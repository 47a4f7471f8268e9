"""Reads stay inside their workspace, and pages neither repeat nor skip."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from domain.errors import Invalid, NotFound
from domain.run import Origin, Run, RunState, record
from domain.schedule import Condition, ScheduleView
from readmodel.paging import Page
from readmodel.projection import Projector
from readmodel.queries import Queries
from tests.readmodel.samples import T0, WORKSPACE, a_run, schedule_changed, told

NAMES = {
    "q-1": "Finance/daily/Revenue",
    "q-2": "finance/daily/costs",
    "q-3": "finance_x/daily",
    "q-4": "ops/50%/backup",
    "q-5": "ops/backup",
}


@pytest.fixture(scope="module", autouse=True)
async def _content(projector: Projector) -> None:
    for schedule_id, name in NAMES.items():
        await projector.project([schedule_changed(schedule_id, name=name)])
    await projector.project(
        [
            schedule_changed("q-4", name=NAMES["q-4"], seq=2, condition=Condition.PAUSED, target="pipeline/ops"),
            schedule_changed("q-gone", name="finance/gone", condition=Condition.DELETED),
            schedule_changed("q-else", name="finance/else", workspace="elsewhere"),
            told(record(a_run("q-else", workspace="elsewhere"))),
        ]
    )
    for number in range(10):
        # Pairs are recorded at one instant, so that their order is that of their ids.
        at = T0 + timedelta(microseconds=number // 2)
        state = RunState.SKIPPED if number % 3 == 0 else RunState.QUEUED
        origin = Origin.CRON if number % 2 else Origin.RUN_NOW
        run = a_run("q-1", number, recorded_at=at, state=state, origin=origin)
        await projector.project([told(record(run))])


async def every_page(ask: Callable[[str | None], Awaitable[Page[ScheduleView]]]) -> AsyncIterator[Page[ScheduleView]]:
    page = await ask(None)
    yield page
    while page.next_cursor is not None:
        page = await ask(page.next_cursor)
        yield page


def ids(views: tuple[ScheduleView, ...]) -> list[str]:
    return [view.schedule_id for view in views]


def numbers(runs: tuple[Run, ...]) -> list[int]:
    return [int(run.run_id.rsplit("-", 1)[1]) for run in runs]


async def test_schedules_go_by_name_in_any_case(queries: Queries) -> None:
    assert ids((await queries.schedules(WORKSPACE)).items) == ["q-2", "q-1", "q-3", "q-4", "q-5"]


async def test_pages_of_schedules_join_without_gap(queries: Queries) -> None:
    pages = [page async for page in every_page(lambda cursor: queries.schedules(WORKSPACE, cursor=cursor, limit=2))]
    assert [ids(page.items) for page in pages] == [["q-2", "q-1"], ["q-3", "q-4"], ["q-5"]]


async def test_a_full_last_page_has_no_next(queries: Queries) -> None:
    assert (await queries.schedules(WORKSPACE, limit=5)).next_cursor is None


async def test_filters_of_schedules(queries: Queries) -> None:
    async def found(**filters: object) -> list[str]:
        return ids((await queries.schedules(WORKSPACE, **filters)).items)  # type: ignore[arg-type]

    assert await found(prefix="FINANCE/") == ["q-2", "q-1"]
    assert await found(prefix="finance_") == ["q-3"]
    assert await found(search="BACKUP") == ["q-4", "q-5"]
    assert await found(search="50%/") == ["q-4"]
    assert await found(search="%") == ["q-4"]
    assert await found(conditions=[Condition.PAUSED, Condition.BLOCKED]) == ["q-4"]
    assert await found(conditions=[Condition.DELETED]) == []
    assert await found(target="pipeline/ops") == ["q-4"]
    assert await found(target="pipeline/ops", conditions=[Condition.ACTIVE]) == []


async def test_by_target_and_count(queries: Queries) -> None:
    assert ids(await queries.schedules_by_target(WORKSPACE, "pipeline/finance/close")) == ["q-2", "q-1", "q-3", "q-5"]
    assert ids(await queries.schedules_by_target("elsewhere", "pipeline/ops")) == []
    assert await queries.count_schedules(WORKSPACE) == 5


async def test_runs_go_newest_first(queries: Queries) -> None:
    seen: list[int] = []
    page = await queries.runs(WORKSPACE, limit=3)
    seen += numbers(page.items)
    while page.next_cursor is not None:
        page = await queries.runs(WORKSPACE, limit=3, cursor=page.next_cursor)
        seen += numbers(page.items)
    assert seen == list(reversed(range(10)))


async def test_runs_that_arrive_meanwhile_do_not_shift_a_page(queries: Queries, projector: Projector) -> None:
    first = await queries.runs(WORKSPACE, schedule_id="q-1", limit=4)
    await projector.project([told(record(a_run("q-2", recorded_at=T0 + timedelta(days=1))))])
    second = await queries.runs(WORKSPACE, schedule_id="q-1", limit=4, cursor=first.next_cursor)
    assert numbers(first.items + second.items) == [9, 8, 7, 6, 5, 4, 3, 2]


async def test_filters_of_runs(queries: Queries) -> None:
    async def found(**filters: object) -> list[int]:
        return numbers((await queries.runs(WORKSPACE, schedule_id="q-1", **filters)).items)  # type: ignore[arg-type]

    assert await found(states=[RunState.SKIPPED]) == [9, 6, 3, 0]
    assert await found(states=[RunState.SKIPPED, RunState.FAILED], origins=[Origin.CRON]) == [9, 3]
    assert await found(origins=[Origin.HOOK]) == []


@pytest.mark.parametrize("schedule_id", ["q-else", "q-gone", "never", ""])
async def test_schedules_not_found(queries: Queries, schedule_id: str) -> None:
    with pytest.raises(NotFound) as refusal:
        await queries.schedule(WORKSPACE, schedule_id)
    assert refusal.value.code == "schedule.not_found"


@pytest.mark.parametrize("run_id", ["q-else-0000", "never"])
async def test_runs_not_found(queries: Queries, run_id: str) -> None:
    for call in (queries.run(WORKSPACE, run_id), queries.trail(WORKSPACE, run_id)):
        with pytest.raises(NotFound) as refusal:
            await call
        assert refusal.value.code == "run.not_found"


async def test_another_workspaces_runs_are_not_listed(queries: Queries) -> None:
    assert (await queries.runs(WORKSPACE, schedule_id="q-else")).items == ()
    assert numbers((await queries.runs("elsewhere")).items) == [0]


async def test_a_tampered_cursor_is_refused(queries: Queries) -> None:
    given = (await queries.schedules(WORKSPACE, limit=1)).next_cursor
    assert given is not None
    other_list = (await queries.runs(WORKSPACE, limit=1)).next_cursor
    altered = [given[:at] + ("A" if given[at] != "A" else "B") + given[at + 1 :] for at in range(len(given) - 1)]
    lengthened = [given + more for more in ("A", "AAAA", "\n", "=")]
    for cursor in [*altered, *lengthened, given[:-4], "", "\x00", "é", "%%%", "e30", other_list]:
        with pytest.raises(Invalid) as refusal:
            await queries.schedules(WORKSPACE, cursor=cursor)
        assert refusal.value.code == "page.cursor_invalid"


@pytest.mark.parametrize("limit", [0, -1, 501, 2**70])
async def test_a_page_has_a_size(queries: Queries, limit: int) -> None:
    for call in (queries.schedules(WORKSPACE, limit=limit), queries.runs(WORKSPACE, limit=limit)):
        with pytest.raises(Invalid) as refusal:
            await call
        assert (refusal.value.code, refusal.value.field) == ("page.limit_invalid", "limit")
