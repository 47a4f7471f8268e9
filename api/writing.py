"""Changes of schedules: check what can be checked, let the workflow decide, then mirror what it decided.

The workflow's answer carries the changes that the mirror may not have seen. Mirroring them here, before the answer
goes out, is what makes a write visible in the very next read; the workflow sends them again by itself, so an outage
of the database in between loses nothing.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncConnection

from api.settings import Settings
from api.temporal import ScheduleWorkflows
from domain import graph, ids, manual_run, schedule_check
from domain.errors import AlmanacError, Busy, Conflict, NotFound, Unavailable
from domain.events import Event, RunChanged
from domain.lost_run import Ending
from domain.messages import (
    DELETE_UPDATE,
    PAUSE_UPDATE,
    RESUME_UPDATE,
    UNBLOCK_UPDATE,
    CreateSchedule,
    DropRun,
    ReviseSchedule,
    RunNow,
)
from domain.names import name_key
from domain.run import Origin, Run, RunState
from domain.schedule import Moved, ScheduleDefinition, ScheduleView
from domain.values import Value
from domain.workspace import Workspace
from executors.protocol import sealed
from executors.registry import Registry
from readmodel import audit
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.dependencies import Dependencies
from readmodel.names import Names
from readmodel.paging import LARGEST_PAGE
from readmodel.projection import project
from readmodel.queries import Queries
from readmodel.workspaces import Workspaces

ID_BYTES = 12

CATCH_SECONDS = 10.0
CATCH_AGAIN_SECONDS = 0.2


class Act(StrEnum):
    """What a person does to a schedule as a whole; the value is the act's name on the wire and in the audit."""

    PAUSE = PAUSE_UPDATE
    RESUME = RESUME_UPDATE
    UNBLOCK = UNBLOCK_UPDATE
    DELETE = DELETE_UPDATE


class Replanned(Value):
    """A schedule after its replan, and what that changed."""

    schedule: ScheduleView
    tzdata_before: str | None
    """The version of the zone data by which it was planned before; the present one is the schedule's."""
    moved: tuple[Moved, ...]


@dataclass(frozen=True)
class ScheduleWriter:
    """Every method raises domain.errors refusals, after which nothing was changed; only of an Unavailable nobody
    knows."""

    database: Database
    queries: Queries
    reservations: Names
    dependencies: Dependencies
    workflows: ScheduleWorkflows
    workspaces: Workspaces
    executors: Registry
    settings: Settings
    claims: Claims

    async def create(
        self, workspace: str, definition: ScheduleDefinition, *, by: str, key: str | None, now: datetime
    ) -> ScheduleView:
        """The same `key` is the same schedule."""
        schedule_id = new_schedule_id(workspace, key)
        earlier = await self._made_before(workspace, schedule_id) if key is not None else None
        definition, target = await self._checked(workspace, definition, earlier, now)
        active = await self.workspaces.is_active(workspace)
        command = CreateSchedule(definition=definition, target=target, by=by, workspace_active=active)
        async with (
            self._reserved(workspace, definition.name, schedule_id),
            self._held(workspace, schedule_id, definition) as connection,
        ):
            answer = await self.workflows.create(workspace, schedule_id, command)
            view = await self._mirrored(answer.schedule, answer.events, "create", by, connection)
        # Whoever switched the workspace in between may not have seen this schedule yet.
        now_active = await self.workspaces.is_active(workspace)
        if now_active is not active:
            await self.workflows.set_workspace_active(workspace, schedule_id, now_active)
        return view

    async def replace(
        self,
        workspace: str,
        schedule_id: str,
        definition: ScheduleDefinition,
        *,
        expected_revision: int,
        by: str,
        now: datetime,
    ) -> ScheduleView:
        """Refused with Conflict `schedule.revision_conflict` where somebody changed it in between."""
        before = await self.queries.schedule(workspace, schedule_id)
        definition, target = await self._checked(workspace, definition, before.definition, now)
        command = ReviseSchedule(definition=definition, target=target, expected_revision=expected_revision, by=by)
        async with (
            self._reserved(workspace, definition.name, schedule_id),
            self._held(workspace, schedule_id, definition) as connection,
        ):
            answer = await self.workflows.revise(workspace, schedule_id, command)
            view = await self._mirrored(answer.schedule, answer.events, "revise", by, connection)
        if name_key(before.definition.name) != name_key(definition.name):
            await self.reservations.release(workspace, before.definition.name, schedule_id)
        return view

    async def act(self, workspace: str, schedule_id: str, act: Act, *, by: str) -> ScheduleView:
        """An unblock is refused with Invalid while the definition or its payload is still not right, a deletion with
        Conflict `schedule.has_dependents` while others wait for the schedule."""
        if act is Act.UNBLOCK:
            blocked = await self.queries.schedule(workspace, schedule_id)
            await self._target(workspace, schedule_check.check(blocked.definition))
        if act is Act.DELETE:
            async with self.dependencies.held(workspace, ()) as (kin, connection):
                graph.check_deletable(schedule_id, kin.edges, kin.names)
                answer = await self.workflows.act(workspace, schedule_id, act.value, by)
                return await self._mirrored(answer.schedule, answer.events, act.value, by, connection)
        answer = await self.workflows.act(workspace, schedule_id, act.value, by)
        return await self._mirrored(answer.schedule, answer.events, act.value, by)

    async def set_workspace_active(self, workspace: str, active: bool, *, by: str) -> Workspace:
        """Keeps it, so that no run starts, then tells every schedule. Repeating it tells all of them again, which
        changes nothing for those that have heard."""
        changed = await self.workspaces.set_active(workspace, active, by)
        cursor = None
        while True:
            page = await self.queries.schedules(workspace, limit=LARGEST_PAGE, cursor=cursor)
            ids = [view.schedule_id for view in page.items]
            await asyncio.gather(*(self.workflows.set_workspace_active(workspace, one, active) for one in ids))
            cursor = page.next_cursor
            if cursor is None:
                return changed

    async def replan(self, workspace: str, schedule_id: str, *, by: str) -> Replanned:
        """What moved is in the audit too."""
        before = await self.queries.schedule(workspace, schedule_id)
        answer = await self.workflows.replan(workspace, schedule_id, by)
        view = answer.schedule
        subjects = {"schedule_id": schedule_id, "tzdata": f"{before.tzdata_version} → {view.tzdata_version}"}
        subjects |= {one.nominal.isoformat(): f"{_said(one.before)} → {_said(one.after)}" for one in answer.moved}
        await self._mirror(
            workspace, answer.events, "replan", by, subjects, view.revision, counts={"moved": len(answer.moved)}
        )
        return Replanned(schedule=view, tzdata_before=before.tzdata_version, moved=answer.moved)

    async def run_now(
        self,
        workspace: str,
        schedule_id: str,
        *,
        by: str,
        key: str | None,
        origin: Literal[Origin.RUN_NOW, Origin.HOOK] = Origin.RUN_NOW,
    ) -> Run:
        """The same `key` is the same run."""
        command = RunNow(key=key or secrets.token_hex(16), by=by, origin=origin)
        answer = await self.workflows.run_now(workspace, schedule_id, command)
        run = answer.run
        subjects = {"schedule_id": schedule_id, "run_id": run.run_id}
        await self._mirror(workspace, answer.events, origin, by, subjects, run.schedule_revision)
        return run

    async def cancel(self, workspace: str, run_id: str, *, by: str) -> Run:
        """Asks for the run's end and answers the run as it then is. Refused with Conflict `run.ended`, and with Busy
        `run.busy`."""
        run = await self.queries.run(workspace, run_id)
        if run.is_final:
            raise Conflict("run.ended", f"The run {run_id} has already ended: it is {run.state}.")
        await self._told_to_end(run, by)
        subjects = ({"schedule_id": run.schedule_id} if run.schedule_id else {}) | {"run_id": run_id}
        async with self.database.transaction() as connection:
            await audit.append(connection, by=by, action="run.cancel", workspace=workspace, subjects=subjects)
        return await self.queries.run(workspace, run_id)

    async def _told_to_end(self, run: Run, by: str) -> None:
        """What waits is taken off its line by the schedule, or by the lane where it has none; what has a workflow ends
        itself. A run on its way from one to the other is caught where it arrives."""
        try:
            async with asyncio.timeout(CATCH_SECONDS):
                while not run.is_final and not await self._caught(run, by):
                    await asyncio.sleep(CATCH_AGAIN_SECONDS)
                    run = await self.queries.run(run.workspace, run.run_id)
        except TimeoutError as error:
            raise Busy("run.busy", "The run is just changing hands and was not cancelled; try again.") from error

    async def _caught(self, run: Run, by: str) -> bool:
        if run.state is not RunState.WAITING and await self.workflows.cancel_run(run, by):
            return True
        if run.schedule_id is None:
            if not await self.workflows.drop_from_lane(run, by):
                await self._abandon(run, by)
            # What became of it is seen by the run's end, or by its workflow at the next look.
            return False
        try:
            answer = await self.workflows.drop(run.workspace, run.schedule_id, DropRun(run_id=run.run_id, by=by))
        except (Conflict, NotFound):
            return False
        async with self.database.transaction() as connection:
            await project(connection, answer.events)
        return True

    async def _abandon(self, run: Run, by: str) -> None:
        """Ends a manual run that nobody knows any more, once it is certain that nobody launches it later."""
        claim = await self.claims.void(run_id=run.run_id, execution_id=ids.execution_id(run.run_id))
        current = await self.queries.run(run.workspace, run.run_id)
        if current.is_final or await self.workflows.cancel_run(current, by):
            return
        outcome = claim.outcome if claim else None
        ending = Ending(state=outcome, reason=claim.reason, message=claim.message) if claim and outcome else None
        now = datetime.now(UTC)
        ended = manual_run.abandoned(current, claimed=claim is not None, ending=ending, by=by, now=now)
        async with self.database.transaction() as connection:
            await project(connection, [RunChanged(change=ended)])

    async def _checked(
        self, workspace: str, definition: ScheduleDefinition, before: ScheduleDefinition | None, now: datetime
    ) -> tuple[ScheduleDefinition, str]:
        """The definition as it will be kept, with its secrets sealed, and its target."""
        checked = schedule_check.check(definition)
        schedule_check.check_interval(checked, now, self.settings.min_interval_seconds)
        former = before.payload if before and before.executor == checked.executor else {}
        executor = self.executors.for_save(checked.executor)
        kept = checked.model_copy(update={"payload": await sealed(executor, workspace, checked.payload, former)})
        return kept, await self._target(workspace, kept)

    async def _made_before(self, workspace: str, schedule_id: str) -> ScheduleDefinition | None:
        """What a repeated request has already made: sealing its secrets once more would make another definition."""
        try:
            return (await self.queries.schedule(workspace, schedule_id)).definition
        except NotFound:
            return None

    async def _target(self, workspace: str, definition: ScheduleDefinition) -> str:
        executor = self.executors.for_save(definition.executor)
        return await executor.validate(workspace, definition.payload)

    @asynccontextmanager
    async def _held(
        self, workspace: str, schedule_id: str, definition: ScheduleDefinition
    ) -> AsyncIterator[AsyncConnection | None]:
        """Keeps the workspace's dependencies as they are until a schedule with parents is mirrored, on the connection
        given. Raises Invalid where it may not wait for those."""
        if not definition.parents:
            yield None
            return
        async with self.dependencies.held(workspace, definition.parents) as (kin, connection):
            graph.check(schedule_id, definition, kin.edges, kin.names | {schedule_id: definition.name})
            yield connection

    @asynccontextmanager
    async def _reserved(self, workspace: str, name: str, schedule_id: str) -> AsyncIterator[None]:
        """Keeps the name while the workflow decides. A refusal gives it up; when nobody knows, it lapses by itself."""
        most = self.settings.max_schedules_per_workspace
        await self.reservations.reserve(workspace, name, schedule_id, max_schedules=most)
        try:
            yield
        except Unavailable:
            raise
        except AlmanacError:
            # Where it already is the name of a living schedule, that schedule's own row keeps it.
            await self.reservations.release(workspace, name, schedule_id)
            raise

    async def _mirrored(
        self,
        view: ScheduleView,
        events: Sequence[Event],
        action: str,
        by: str,
        connection: AsyncConnection | None = None,
    ) -> ScheduleView:
        subjects = {"schedule_id": view.schedule_id}
        await self._mirror(view.workspace, events, action, by, subjects, view.revision, connection=connection)
        return view

    async def _mirror(
        self,
        workspace: str,
        events: Sequence[Event],
        action: str,
        by: str,
        subjects: dict[str, str],
        revision: int | None,
        counts: Mapping[str, int] | None = None,
        connection: AsyncConnection | None = None,
    ) -> None:
        """On the connection given, else in a transaction of its own."""
        async with nullcontext(connection) if connection else self.database.transaction() as used:
            await project(used, events)
            await audit.append(
                used,
                by=by,
                action=f"schedule.{action}",
                workspace=workspace,
                subjects=subjects,
                revision=revision,
                counts=counts,
            )


def _said(at: datetime | None) -> str:
    return at.isoformat() if at else "-"


def new_schedule_id(workspace: str, key: str | None) -> str:
    """`s` and twelve letters and digits: by chance, or always the same for one idempotency key."""
    if key is None:
        material = secrets.token_bytes(ID_BYTES)
    else:
        material = hashlib.sha256(f"{workspace}\0{key}".encode()).digest()
    return "s" + base64.b32encode(material).decode().lower()[:12]
