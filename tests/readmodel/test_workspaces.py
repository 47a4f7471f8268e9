"""Workspaces, and the audit that is kept for each."""

from __future__ import annotations

import asyncio

import pytest

from domain.errors import Invalid, NotFound
from domain.workspace import Posture, Workspace
from readmodel.audit import Audit, append
from readmodel.database import Database
from readmodel.workspaces import Workspaces


async def test_ensure_makes_it_once(database: Database) -> None:
    workspaces = Workspaces(database)
    made = await asyncio.gather(*(workspaces.ensure("team-a") for _ in range(5)))
    assert set(made) == {Workspace(name="team-a", active=True, posture=Posture.PRODUCTION)}
    assert await workspaces.require("team-a") == made[0]


@pytest.mark.parametrize("name", ["", "-a", "_a", "A", "a b", "a/b", "é", "a" * 64, "a\n", "a\x00"])
async def test_names_outside_the_grammar(database: Database, name: str) -> None:
    with pytest.raises(Invalid) as invalid:
        await Workspaces(database).ensure(name)
    assert invalid.value.code == "workspace.name_invalid"
    with pytest.raises(NotFound) as unknown:
        await Workspaces(database).require(name)
    assert unknown.value.code == "workspace.not_found"


async def test_the_longest_name(database: Database) -> None:
    assert (await Workspaces(database).ensure("0" + "a" * 62)).active


async def test_audit_pages_go_newest_first_and_stay_inside(database: Database) -> None:
    audit, act = Audit(database), "schedule.pause"
    async with database.transaction() as connection:
        for number in range(5):
            subjects, counts = {"schedule_id": f"s-{number}"}, {"open_runs": 2}
            await append(
                connection, by="ada\x00", action=act, workspace="a", subjects=subjects, revision=number, counts=counts
            )
        await append(connection, by="bob", action=act, workspace="b", subjects={})
    first = await audit.page("a", limit=3)
    second = await audit.page("a", limit=3, cursor=first.next_cursor)
    assert [row.revision for row in first.items + second.items] == [4, 3, 2, 1, 0]
    assert second.next_cursor is None
    newest = first.items[0]
    assert (newest.by, newest.subjects, newest.counts) == ("ada\ufffd", {"schedule_id": "s-4"}, {"open_runs": 2})
    (other,) = (await audit.page("b")).items
    assert (other.revision, other.counts) == (None, {})
    with pytest.raises(Invalid):
        await audit.page("b", cursor=first.next_cursor)
