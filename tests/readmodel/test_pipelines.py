"""Saving makes a draft, releasing an immutable version, and repeating either changes nothing."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from domain.errors import Conflict, Invalid, NotFound
from domain.pipeline import PipelineDefinition, Step
from readmodel.audit import Audit
from readmodel.database import Database
from readmodel.pipelines import Pipelines
from readmodel.workspaces import Workspaces
from tests.readmodel.samples import WORKSPACE

numbers = itertools.count()


@pytest.fixture(scope="module")
def pipelines(database: Database) -> Pipelines:
    return Pipelines(database)


@pytest.fixture
def name() -> str:
    return f"finance/p{next(numbers):03}"


def definition(name: str, *command: str, **changes: Any) -> PipelineDefinition:
    step = Step(id="close", command=command or ("true",), environment={"DAY": "ü"}, timeout_seconds=9)
    return PipelineDefinition(name=name, steps=(step,)).model_copy(update=changes)


async def test_a_draft_is_not_released(pipelines: Pipelines, name: str) -> None:
    saved = await pipelines.save(WORKSPACE, definition(name), "ada")
    assert saved == await pipelines.get(WORKSPACE, name)
    assert (saved.draft, saved.draft_sha256) == (definition(name), definition(name).body_sha256)
    assert (saved.current_version, saved.released_versions, saved.changed_by) == (None, (), "ada")
    with pytest.raises(Conflict) as refusal:
        await pipelines.current(WORKSPACE, name)
    assert refusal.value.code == "pipeline.not_released"


async def test_the_same_body_again_changes_nothing(pipelines: Pipelines, database: Database, name: str) -> None:
    first = await pipelines.save(WORKSPACE, definition(name), "ada")
    assert await pipelines.save(WORKSPACE, definition(name), "bob") == first
    released = await pipelines.release(WORKSPACE, name, "ada")
    assert await pipelines.release(WORKSPACE, name, "bob") == released
    audited = await Audit(database).page(WORKSPACE, limit=500)
    mine = [(row.action, row.by, row.revision) for row in audited.items if row.subjects == {"pipeline": name}]
    assert mine == [("pipeline.release", "ada", 1), ("pipeline.save", "ada", None)]


async def test_versions_never_change(pipelines: Pipelines, name: str) -> None:
    await pipelines.save(WORKSPACE, definition(name, "one"), "ada")
    await pipelines.release(WORKSPACE, name, "ada")
    one = await pipelines.current(WORKSPACE, name)
    await pipelines.save(WORKSPACE, definition(name, "two"), "bob")
    assert await pipelines.current(WORKSPACE, name) == one
    assert (one.version, one.definition, one.body_sha256) == (
        1,
        definition(name, "one"),
        definition(name, "one").body_sha256,
    )
    released = await pipelines.release(WORKSPACE, name, "bob")
    assert (released.current_version, released.released_versions, released.changed_by) == (2, (1, 2), "bob")
    two = await pipelines.current(WORKSPACE, name)
    assert (two.pipeline_id, two.version, two.definition) == (one.pipeline_id, 2, definition(name, "two"))
    await pipelines.save(WORKSPACE, definition(name, "one"), "ada")
    assert (await pipelines.release(WORKSPACE, name, "ada")).current_version == 3


async def test_only_the_draft_that_was_seen_is_released(pipelines: Pipelines, name: str) -> None:
    seen = await pipelines.save(WORKSPACE, definition(name, "one"), "ada")
    now = await pipelines.save(WORKSPACE, definition(name, "two"), "bob")
    with pytest.raises(Conflict) as refusal:
        await pipelines.release(WORKSPACE, name, "ada", expected_sha256=seen.draft_sha256)
    assert (refusal.value.code, refusal.value.details) == ("pipeline.draft_changed", {"draft_sha256": now.draft_sha256})
    assert (await pipelines.get(WORKSPACE, name)).current_version is None
    assert (await pipelines.release(WORKSPACE, name, "a", expected_sha256=now.draft_sha256)).current_version == 1


async def test_releases_at_once_make_one_version(pipelines: Pipelines, name: str) -> None:
    await pipelines.save(WORKSPACE, definition(name), "ada")
    released = await asyncio.gather(*(pipelines.release(WORKSPACE, name, "ada") for _ in range(10)))
    assert {view.released_versions for view in released} == {(1,)}


async def test_saves_at_once_make_one_pipeline(pipelines: Pipelines, name: str) -> None:
    saves = (pipelines.save(WORKSPACE, definition(name, str(n)), "ada") for n in range(10))
    assert len({view.pipeline_id for view in await asyncio.gather(*saves)}) == 1


async def test_another_workspace_has_none_of_it(pipelines: Pipelines, database: Database, name: str) -> None:
    other = (await Workspaces(database).ensure("elsewhere")).name
    mine = await pipelines.save(WORKSPACE, definition(name), "ada")
    for call in (
        pipelines.get(other, name),
        pipelines.current(other, name),
        pipelines.release(other, name, "ada"),
    ):
        with pytest.raises(NotFound) as refusal:
            await call
        assert refusal.value.code == "pipeline.not_found"
    theirs = await pipelines.save(other, definition(name), "bob")
    assert theirs.pipeline_id != mine.pipeline_id
    assert (await pipelines.page(other)).items == (theirs,)


async def test_pages_go_by_name(pipelines: Pipelines, database: Database) -> None:
    desk = (await Workspaces(database).ensure("pages")).name
    wanted = [f"a/{word}" for word in ("b", "b-c", "b/c", "b_c", "c")]
    for name in reversed(wanted):
        await pipelines.save(desk, definition(name), "ada")
    seen: list[str] = []
    cursor: str | None = None
    while len(seen) < len(wanted):
        page = await pipelines.page(desk, cursor=cursor, limit=2)
        seen += [view.name for view in page.items]
        cursor = page.next_cursor
    assert seen == sorted(wanted)
    assert cursor is None


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (definition("x", "nul\x00"), "steps.0.command.0"),
        (definition("x", description="half \ud800"), "description"),
        (
            definition("x", steps=(Step(id="s", command=("t",), environment={"K\x00": "v"}),)),
            "steps.0.environment.K\ufffd",
        ),
        (definition("Bad Name"), "name"),
    ],
)
async def test_what_can_not_be_stored_or_run_is_refused(
    pipelines: Pipelines, bad: PipelineDefinition, field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await pipelines.save(WORKSPACE, bad, "ada")
    assert refusal.value.field == field


async def test_an_unknown_workspace(pipelines: Pipelines, name: str) -> None:
    with pytest.raises(NotFound) as refusal:
        await pipelines.save("nobody", definition(name), "ada")
    assert refusal.value.code == "workspace.not_found"
