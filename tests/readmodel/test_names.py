"""A name belongs to one live schedule of a workspace, through crashes between its reservation and its use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from sqlalchemy import text

from domain.errors import Conflict, Invalid, NotFound
from domain.schedule import Condition
from readmodel.database import Database
from readmodel.names import LONGEST_NAME, Names
from readmodel.projection import Projector
from readmodel.workspaces import Workspaces
from tests.readmodel.samples import schedule_changed


@pytest.fixture(scope="module")
def names(database: Database) -> Names:
    return Names(database)


@pytest.fixture
async def desk(database: Database, request: pytest.FixtureRequest) -> str:
    """A workspace of the test's own."""
    name = request.node.name[:60].replace("[", "-").replace("]", "")
    return (await Workspaces(database).ensure(name)).name


async def lapse(database: Database, desk: str) -> None:
    """Lets a minute and a second go by for the reservations of the workspace."""
    aged = "UPDATE schedule_names SET reserved_at = reserved_at - interval '61 seconds' WHERE workspace = :w"
    async with database.transaction() as connection:
        await connection.execute(text(aged), {"w": desk})


async def refused(call: Awaitable[object]) -> Conflict:
    with pytest.raises(Conflict) as refusal:
        await call
    return refusal.value


async def test_a_name_has_one_owner_in_any_case(names: Names, desk: str) -> None:
    assert await names.reserve(desk, "Finance/Straße", "n-1", max_schedules=9) == "n-1"
    assert await names.reserve(desk, "Finance/Straße", "n-1", max_schedules=9) == "n-1"
    refusal = await refused(names.reserve(desk, "FINANCE/STRASSE", "n-2", max_schedules=9))
    assert (refusal.code, refusal.field, refusal.details) == ("schedule.name_taken", "name", {"schedule_id": "n-1"})
    assert (await refused(names.reserve(desk, "Finance/Stra\u00dfe", "n-2", max_schedules=9))).code == refusal.code


async def test_composed_and_decomposed_letters_are_one_name(names: Names, desk: str) -> None:
    await names.reserve(desk, "caf\u00e9", "n-1", max_schedules=9)
    await refused(names.reserve(desk, "CAFE\u0301", "n-2", max_schedules=9))


async def test_other_workspaces_have_their_own_names(names: Names, database: Database, desk: str) -> None:
    other = (await Workspaces(database).ensure("names-elsewhere")).name
    await names.reserve(desk, "same", "n-1", max_schedules=9)
    await names.reserve(other, "same", "n-2", max_schedules=9)


async def test_twenty_at_once_have_one_winner(names: Names, desk: str) -> None:
    calls = (names.reserve(desk, "wanted", f"n-{n}", max_schedules=99) for n in range(20))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    (winner,) = (answer for answer in answers if isinstance(answer, str))
    assert all(answer.details == {"schedule_id": winner} for answer in answers if isinstance(answer, Conflict))


async def test_a_reservation_lapses_unless_its_schedule_appears(
    names: Names, projector: Projector, database: Database, desk: str
) -> None:
    await names.reserve(desk, "crashed", "lapse-1", max_schedules=9)
    await names.reserve(desk, "made", "lapse-2", max_schedules=9)
    await projector.project([schedule_changed("lapse-2", name="made", workspace=desk)])
    await refused(names.reserve(desk, "crashed", "lapse-3", max_schedules=9))
    await lapse(database, desk)
    assert await names.reserve(desk, "crashed", "lapse-3", max_schedules=9) == "lapse-3"
    await refused(names.reserve(desk, "made", "lapse-3", max_schedules=9))


async def test_a_schedule_holds_its_name_without_a_reservation(names: Names, projector: Projector, desk: str) -> None:
    await projector.project([schedule_changed("bare-1", name="bare", workspace=desk)])
    await names.release(desk, "bare", "bare-1")
    refusal = await refused(names.reserve(desk, "Bare", "bare-2", max_schedules=9))
    assert refusal.details == {"schedule_id": "bare-1"}


async def test_a_rename_holds_both_names_until_it_is_done(
    names: Names, projector: Projector, database: Database, desk: str
) -> None:
    await names.reserve(desk, "before", "ren-1", max_schedules=9)
    await projector.project([schedule_changed("ren-1", name="before", workspace=desk)])
    await names.reserve(desk, "after", "ren-1", max_schedules=9)
    await refused(names.reserve(desk, "after", "ren-2", max_schedules=9))
    await projector.project([schedule_changed("ren-1", name="after", workspace=desk, seq=2)])
    await names.release(desk, "before", "ren-1")
    await names.reserve(desk, "before", "ren-2", max_schedules=9)
    await lapse(database, desk)
    await refused(names.reserve(desk, "after", "ren-2", max_schedules=9))


async def test_a_deleted_schedule_gives_its_name_up_at_once(names: Names, projector: Projector, desk: str) -> None:
    await names.reserve(desk, "old", "del-1", max_schedules=9)
    await projector.project([schedule_changed("del-1", name="old", workspace=desk)])
    await projector.project([schedule_changed("del-1", name="old", workspace=desk, seq=2, condition=Condition.DELETED)])
    assert await names.reserve(desk, "old", "del-2", max_schedules=9) == "del-2"


async def test_only_the_owner_releases(names: Names, desk: str) -> None:
    await names.reserve(desk, "mine", "n-1", max_schedules=9)
    await names.release(desk, "mine", "n-2")
    await refused(names.reserve(desk, "mine", "n-2", max_schedules=9))
    await names.release(desk, "MINE", "n-1")
    await names.reserve(desk, "mine", "n-2", max_schedules=9)


async def test_the_limit_counts_the_living_and_the_coming(
    names: Names, projector: Projector, database: Database, desk: str
) -> None:
    await names.reserve(desk, "one", "lim-1", max_schedules=2)
    await projector.project([schedule_changed("lim-1", name="one", workspace=desk)])
    gone = {"workspace": desk, "condition": Condition.DELETED}
    await projector.project([schedule_changed("lim-0", name="none", **gone)])
    await names.reserve(desk, "two", "lim-2", max_schedules=2)
    refusal = await refused(names.reserve(desk, "three", "lim-3", max_schedules=2))
    assert refusal.code == "schedule.limit_reached"
    await names.reserve(desk, "two", "lim-2", max_schedules=2)
    await names.reserve(desk, "uno", "lim-1", max_schedules=2)
    await lapse(database, desk)
    await names.reserve(desk, "three", "lim-3", max_schedules=2)


async def test_the_limit_holds_against_many_at_once(names: Names, desk: str) -> None:
    calls = (names.reserve(desk, f"name-{n}", f"n-{n}", max_schedules=5) for n in range(20))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, str) for answer in answers) == 5


@pytest.mark.parametrize("name", ["nul\x00", "half\udc00", "x" * (LONGEST_NAME + 1)], ids=["nul", "half", "long"])
async def test_names_that_can_not_be_kept(names: Names, desk: str, name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await names.reserve(desk, name, "n-1", max_schedules=9)
    assert refusal.value.field == "name"


async def test_the_longest_name_is_kept_and_mirrored(names: Names, projector: Projector, desk: str) -> None:
    longest = "".join(chr(0x10000 + n * 7919 % 60_000) for n in range(LONGEST_NAME))
    await names.reserve(desk, longest, "long-1", max_schedules=9)
    await projector.project([schedule_changed("long-1", name=longest, workspace=desk)])


async def test_an_unknown_workspace(names: Names) -> None:
    with pytest.raises(NotFound) as refusal:
        await names.reserve("nobody", "name", "n-1", max_schedules=9)
    assert refusal.value.code == "workspace.not_found"
