"""The authority for pipelines: drafts that may be saved over, and released versions that never change."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select, update
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from domain import pipeline
from domain.errors import Conflict, NotFound
from domain.pipeline import DRAFT, PipelineDefinition, PipelineVersion, PipelineView, VersionName, VersionRow
from domain.workspace import Posture
from readmodel import audit, workspaces
from readmodel.database import Database
from readmodel.paging import Page, check_limit, page_of, position_of
from readmodel.tables import pipeline_versions, pipelines
from readmodel.text import refuse_unstorable


class Pipelines:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, workspace: str, definition: PipelineDefinition, by: str) -> PipelineView:
        """Makes `definition` the draft of the pipeline it names, which is made if need be. The same body again changes
        nothing. Raises Invalid for a definition that could never run or be stored, NotFound `workspace.not_found`."""
        pipeline.check(definition)
        body = definition.model_dump(mode="json")
        for field, part in body.items():
            refuse_unstorable(part, field)
        draft = {"draft": body, "draft_sha256": definition.body_sha256, "changed_at": func.now(), "changed_by": by}
        statement = insert(pipelines).values(workspace=workspace, name=definition.name, **draft)
        changed = statement.on_conflict_do_update(
            index_elements=["workspace", "name"],
            index_where=pipelines.c.discarded_at.is_(None),
            set_=draft,
            where=pipelines.c.draft_sha256 != statement.excluded.draft_sha256,
        ).returning(pipelines.c.pipeline_id)
        async with self._database.transaction() as connection:
            await workspaces.lock(connection, workspace)
            if await connection.scalar(changed) is not None:
                await _audit(connection, "pipeline.save", workspace, definition.name, by)
            return await _view(connection, workspace, definition.name)

    async def release(self, workspace: str, name: str, by: str, *, expected_sha256: str | None = None) -> PipelineView:
        """Makes the draft an immutable version, the next number, and moves the current pointer to it. A draft that is
        the current version already changes nothing. Raises NotFound `pipeline.not_found`, and Conflict
        `pipeline.draft_changed` when the draft is not the body that the caller saw (`expected_sha256`)."""
        async with self._database.transaction() as connection:
            draft = await _draft_to_release(connection, workspace, name)
            if expected_sha256 not in (None, draft.draft_sha256):
                raise Conflict(
                    "pipeline.draft_changed",
                    f"The draft of '{name}' was saved again since you read it; read it and release what you mean.",
                    draft_sha256=draft.draft_sha256,
                )
            if draft.draft_sha256 != draft.current_sha256:
                version = draft.last_version + 1
                await _add_version(connection, draft, version, by)
                await _audit(connection, "pipeline.release", workspace, name, by, version)
            return await _view(connection, workspace, name)

    async def point(
        self, workspace: str, name: str, version: VersionName, by: str, *, expected: VersionName | None = None
    ) -> PipelineView:
        """Moves the current pointer to a released version or, where the workspace's posture allows it, to the draft.
        The same again changes nothing. Raises NotFound `pipeline.not_found` and `pipeline.version_not_found`, Conflict
        `pipeline.draft_not_allowed`, and `pipeline.current_changed` when the pointer was not where the caller saw it
        (`expected`)."""
        async with self._database.transaction() as connection:
            posture = await workspaces.lock(connection, workspace)
            before = await _view(connection, workspace, name)
            if expected is not None and before.current_version != expected:
                raise _current_changed(before)
            if version == DRAFT and posture is not Posture.DEVELOPMENT:
                raise _draft_not_allowed(workspace)
            if version != DRAFT and version not in before.released_versions:
                raise _version_not_found(name, version)
            if before.current_version == version:
                return before
            values = {"current_version": None if version == DRAFT else version, "current_is_draft": version == DRAFT}
            await _set(connection, before.pipeline_id, by, **values)
            await _audit(connection, "pipeline.point", workspace, name, by, version)
            return await _view(connection, workspace, name)

    async def discard(self, workspace: str, name: str, by: str) -> None:
        """There is no such pipeline any more; what ran of it keeps its rows and its files. One that is saved under its
        name later is another. Raises NotFound `pipeline.not_found`."""
        async with self._database.transaction() as connection:
            await workspaces.lock(connection, workspace)
            found = await _view(connection, workspace, name)
            await _set(connection, found.pipeline_id, by, discarded_at=func.now())
            await _audit(connection, "pipeline.discard", workspace, name, by)

    async def versions(self, workspace: str, name: str) -> tuple[VersionRow, ...]:
        """The released versions, the newest first. Raises NotFound `pipeline.not_found`."""
        async with self._database.reading() as connection:
            found = await _view(connection, workspace, name)
            mine = pipeline_versions.c.pipeline_id == found.pipeline_id
            asked = select(pipeline_versions).where(mine).order_by(pipeline_versions.c.version.desc())
            return tuple(_as_row(row, found) for row in await connection.execute(asked))

    async def version(self, workspace: str, name: str, version: int) -> PipelineVersion:
        """Raises NotFound `pipeline.not_found` and `pipeline.version_not_found`."""
        async with self._database.reading() as connection:
            found = await _view(connection, workspace, name)
            mine = (pipeline_versions.c.pipeline_id == found.pipeline_id) & (pipeline_versions.c.version == version)
            row = (await connection.execute(select(pipeline_versions).where(mine))).first()
        if row is None:
            raise _version_not_found(name, version)
        return _as_version(name, row)

    async def draft_sha256(self, workspace: str, name: str) -> str | None:
        """Of the draft as it is now; None where there is no such pipeline."""
        asked = select(pipelines.c.draft_sha256).where(_is_named(workspace, name))
        async with self._database.reading() as connection:
            found: str | None = await connection.scalar(asked)
        return found

    async def get(self, workspace: str, name: str) -> PipelineView:
        """Raises NotFound `pipeline.not_found`."""
        async with self._database.reading() as connection:
            return await _view(connection, workspace, name)

    async def page(self, workspace: str, *, cursor: str | None = None, limit: int = 50) -> Page[PipelineView]:
        """Pipelines by name. Raises Invalid `page.cursor_invalid` and `page.limit_invalid`."""
        listing = f"pipelines/{workspace}"
        asked = _views(workspace)
        if cursor is not None:
            asked = asked.where(pipelines.c.name > position_of(listing, cursor, 1)[0])
        async with self._database.reading() as connection:
            found = await connection.execute(asked.order_by(pipelines.c.name).limit(check_limit(limit)))
            rows = [(_as_view(row), (str(row.name),)) for row in found]
        return page_of(listing, rows, limit)

    async def current(self, workspace: str, name: str) -> PipelineVersion:
        """What a schedule of this pipeline runs now. Raises NotFound `pipeline.not_found` and Conflict
        `pipeline.not_released`."""
        asked = (
            select(
                pipelines, pipeline_versions.c.version, pipeline_versions.c.body_sha256, pipeline_versions.c.definition
            )
            .outerjoin(pipeline_versions, _IS_CURRENT)
            .where(_is_named(workspace, name))
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(asked)).first()
        if row is None:
            raise _not_found(name)
        if row.current_is_draft:
            return PipelineVersion(
                pipeline_id=row.pipeline_id,
                name=name,
                version=DRAFT,
                body_sha256=row.draft_sha256,
                definition=PipelineDefinition.model_validate(row.draft),
            )
        if row.version is None:
            raise Conflict("pipeline.not_released", f"The pipeline '{name}' has no released version; release it first.")
        return _as_version(name, row)


_OF_VERSION = (pipeline_versions.c.version, pipeline_versions.c.body_sha256, pipeline_versions.c.definition)
_IS_CURRENT = (pipeline_versions.c.pipeline_id == pipelines.c.pipeline_id) & (
    pipeline_versions.c.version == pipelines.c.current_version
)
_RELEASED = (
    select(func.array_agg(aggregate_order_by(pipeline_versions.c.version, pipeline_versions.c.version)))
    .where(pipeline_versions.c.pipeline_id == pipelines.c.pipeline_id)
    .scalar_subquery()
)
_LAST_VERSION = (
    select(func.coalesce(func.max(pipeline_versions.c.version), 0))
    .where(pipeline_versions.c.pipeline_id == pipelines.c.pipeline_id)
    .scalar_subquery()
)
_CURRENT_SHA256 = select(pipeline_versions.c.body_sha256).where(_IS_CURRENT).scalar_subquery()


async def _draft_to_release(connection: AsyncConnection, workspace: str, name: str) -> Row[Any]:
    """The draft, locked, so that versions are numbered one after the other."""
    mine = _is_named(workspace, name)
    await connection.execute(select(pipelines.c.pipeline_id).where(mine).with_for_update())
    asked = select(pipelines, _LAST_VERSION.label("last_version"), _CURRENT_SHA256.label("current_sha256")).where(mine)
    row = (await connection.execute(asked)).first()
    if row is None:
        raise _not_found(name)
    return row


async def _add_version(connection: AsyncConnection, draft: Row[Any], version: int, by: str) -> None:
    await connection.execute(
        insert(pipeline_versions).values(
            pipeline_id=draft.pipeline_id,
            version=version,
            body_sha256=draft.draft_sha256,
            definition=draft.draft,
            released_by=by,
        )
    )
    await _set(connection, draft.pipeline_id, by, current_version=version, current_is_draft=False)


async def _set(connection: AsyncConnection, pipeline_id: str, by: str, **values: Any) -> None:
    changed = update(pipelines).where(pipelines.c.pipeline_id == pipeline_id)
    await connection.execute(changed.values(**values, changed_at=func.now(), changed_by=by))


def _is_named(workspace: str, name: str) -> ColumnElement[bool]:
    return (pipelines.c.workspace == workspace) & (pipelines.c.name == name) & pipelines.c.discarded_at.is_(None)


def _views(workspace: str) -> Select[Any]:
    mine = (pipelines.c.workspace == workspace) & pipelines.c.discarded_at.is_(None)
    return select(pipelines, _RELEASED.label("released_versions")).where(mine)


async def _view(connection: AsyncConnection, workspace: str, name: str) -> PipelineView:
    row = (await connection.execute(_views(workspace).where(pipelines.c.name == name))).first()
    if row is None:
        raise _not_found(name)
    return _as_view(row)


def _as_view(row: Row[Any]) -> PipelineView:
    read = {name: value for name, value in row._mapping.items() if name in PipelineView.model_fields}
    current = DRAFT if row.current_is_draft else row.current_version
    return PipelineView.model_validate(
        read | {"current_version": current, "released_versions": row.released_versions or ()}
    )


def _as_row(row: Row[Any], of: PipelineView) -> VersionRow:
    read = {name: value for name, value in row._mapping.items() if name in VersionRow.model_fields}
    return VersionRow.model_validate(read | {"is_current": row.version == of.current_version})


def _as_version(name: str, row: Row[Any]) -> PipelineVersion:
    return PipelineVersion(
        pipeline_id=row.pipeline_id,
        name=name,
        version=row.version,
        body_sha256=row.body_sha256,
        definition=PipelineDefinition.model_validate(row.definition),
    )


async def _audit(
    connection: AsyncConnection, action: str, workspace: str, name: str, by: str, version: VersionName | None = None
) -> None:
    to_draft = {"version": DRAFT} if version == DRAFT else {}
    await audit.append(
        connection,
        by=by,
        action=action,
        workspace=workspace,
        subjects={"pipeline": name, **to_draft},
        revision=version if isinstance(version, int) else None,
    )


def _not_found(name: str) -> NotFound:
    return NotFound("pipeline.not_found", f"There is no pipeline '{name}' in this workspace.")


def _version_not_found(name: str, version: VersionName) -> NotFound:
    return NotFound(
        "pipeline.version_not_found",
        f"The pipeline '{name}' has no released version {version}.",
        hint="Its versions are listed under `…/versions`.",
    )


def _current_changed(found: PipelineView) -> Conflict:
    return Conflict(
        "pipeline.current_changed",
        f"The current version of '{found.name}' is {found.current_version or 'none'} by now; look again.",
        current_version=found.current_version,
    )


def _draft_not_allowed(workspace: str) -> Conflict:
    return Conflict(
        "pipeline.draft_not_allowed",
        f"In the workspace {workspace} only released versions run.",
        hint="Release the draft, or set the workspace's posture to development.",
    )
