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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from api.settings import Settings
from api.temporal import ScheduleWorkflows
from domain import graph, schedule_check
from domain.errors import AlmanacError, Busy, Conflict, Unavailable
from domain.events import Event
from domain.messages import (
    DELETE_UPDATE,
    PAUSE_UPDATE,
    REPLAN_UPDATE,
    RESUME_UPDATE,
    UNBLOCK_UPDATE,
    CreateSchedule,
    ReviseSchedule,
    RunNow,
)
from domain.names import name_key
from domain.run import Run, RunState
from domain.schedule import Moved, ScheduleDefinition, ScheduleView
from executors.registry import Registry
from readmodel import audit
from readmodel.database import Database
from readmodel.dependencies import Dependencies
from readmodel.names import Names
from readmodel.projection import project
from readmodel.queries import Queries

ID_BYTES = 12

CATCH_SECONDS = 10.0
CATCH_AGAIN_SECONDS = 0.2


class Act(StrEnum):
    """What a person does to a schedule as a whole; the value is the act's name on the wire and in the audit."""

    PAUSE = PAUSE_UPDATE
    RESUME = RESUME_UPDATE
    UNBLOCK = UNBLOCK_UPDATE
    DELETE = DELETE_UPDATE


@dataclass(frozen=True)
class ScheduleWriter:
    """Every method raises domain.errors refusals, after which nothing was changed; only of an Unavailable nobody
    knows."""

    database: Database
    queries: Queries
    reservations: Names
    dependencies: Dependencies
    workflows: ScheduleWorkflows
    executors: Registry
    settings: Settings

    async def create(
        self, workspace: str, definition: ScheduleDefinition, *, by: str, key: str | None, now: datetime
    ) -> ScheduleView:
        """The same `key` is the same schedule."""
        definition, target = await self._checked(workspace, definition, now)
        schedule_id = new_schedule_id(workspace, key)
        command = CreateSchedule(definition=definition, target=target, by=by)
        async with (
            self._reserved(workspace, definition.name, schedule_id),
            self._held(workspace, schedule_id, definition),
        ):
            answer = await self.workflows.create(workspace, schedule_id, command)
            return await self._mirrored(answer.schedule, answer.events, "create", by)

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
        definition, target = await self._checked(workspace, definition, now)
        command = ReviseSchedule(definition=definition, target=target, expected_revision=expected_revision, by=by)
        async with (
            self._reserved(workspace, definition.name, schedule_id),
            self._held(workspace, schedule_id, definition),
        ):
            answer = await self.workflows.revise(workspace, schedule_id, command)
            view = await self._mirrored(answer.schedule, answer.events, "revise", by)
        if name_key(before.definition.name) != name_key(definition.name):
            await self.reservations.release(workspace, before.definition.name, schedule_id)
        return view

    async def act(self, workspace: str, schedule_id: str, act: Act, *, by: str) -> ScheduleView:
        """An unblock is refused with Invalid while the payload is still not right, a deletion with Conflict
        `schedule.has_dependents` while others wait for the schedule."""
        if act is Act.UNBLOCK:
            blocked = await self.queries.schedule(workspace, schedule_id)
            await self._target(workspace, blocked.definition)
        if act is Act.DELETE:
            async with self.dependencies.held(workspace, ()) as kin:
                graph.check_deletable(schedule_id, kin.edges, kin.names)
                return await self._act(workspace, schedule_id, act, by)
        return await self._act(workspace, schedule_id, act, by)

    async def _act(self, workspace: str, schedule_id: str, act: Act, by: str) -> ScheduleView:
        answer = await self.workflows.act(workspace, schedule_id, act.value, by)
        return await self._mirrored(answer.schedule, answer.events, act.value, by)

    async def replan(self, workspace: str, schedule_id: str, *, by: str) -> tuple[ScheduleView, tuple[Moved, ...]]:
        """The schedule as it is then, and which of the local times that come next changed their instant."""
        answer = await self.workflows.replan(workspace, schedule_id, by)
        return await self._mirrored(answer.schedule, answer.events, REPLAN_UPDATE, by), answer.moved

    async def run_now(self, workspace: str, schedule_id: str, *, by: str, key: str | None) -> Run:
        """The same `key` is the same run."""
        command = RunNow(key=key or secrets.token_hex(16), by=by)
        answer = await self.workflows.run_now(workspace, schedule_id, command)
        run = answer.run
        subjects = {"schedule_id": run.schedule_id, "run_id": run.run_id}
        await self._mirror(workspace, answer.events, "run_now", by, subjects, run.schedule_revision)
        return run

    async def cancel(self, workspace: str, run_id: str, *, by: str) -> Run:
        """Asks for the run's end and answers the run as it then is. Refused with Conflict `run.ended`, or
        `run.waits_for_parents` while no lane has it, and with Busy `run.busy`."""
        run = await self.queries.run(workspace, run_id)
        if run.is_final:
            raise Conflict("run.ended", f"The run {run_id} has already ended: it is {run.state}.")
        if run.state is RunState.WAITING and run.reason in ("dependency", "delay"):
            raise Conflict(
                "run.waits_for_parents",
                f"The run {run_id} waits for its parents' occurrences and can't be cancelled.",
                hint="Pause its schedule: that ends what waits.",
            )
        run = await self._told_to_end(run, by)
        subjects = {"schedule_id": run.schedule_id, "run_id": run_id}
        async with self.database.transaction() as connection:
            await audit.append(connection, by=by, action="run.cancel", workspace=workspace, subjects=subjects)
        return run

    async def _told_to_end(self, run: Run, by: str) -> Run:
        """A run on its way from its schedule to its lane, or from there to its workflow, is caught where it arrives."""
        try:
            async with asyncio.timeout(CATCH_SECONDS):
                while not run.is_final and not await self.workflows.cancel_run(run, by):
                    await asyncio.sleep(CATCH_AGAIN_SECONDS)
                    run = await self.queries.run(run.workspace, run.run_id)
        except TimeoutError as error:
            raise Busy("run.busy", "The run is just changing hands and was not cancelled; try again.") from error
        return run

    async def _checked(
        self, workspace: str, definition: ScheduleDefinition, now: datetime
    ) -> tuple[ScheduleDefinition, str]:
        """The definition as it will be kept, and its target."""
        checked = schedule_check.check(definition)
        schedule_check.check_interval(checked, now, self.settings.min_interval_seconds)
        return checked, await self._target(workspace, checked)

    async def _target(self, workspace: str, definition: ScheduleDefinition) -> str:
        executor = self.executors.for_save(definition.executor)
        return await executor.validate(workspace, definition.payload)

    @asynccontextmanager
    async def _held(self, workspace: str, schedule_id: str, definition: ScheduleDefinition) -> AsyncIterator[None]:
        """Keeps the workspace's dependencies as they are until a schedule with parents is mirrored. Raises Invalid
        where it may not wait for those."""
        if not definition.parents:
            yield
            return
        async with self.dependencies.held(workspace, definition.parents) as kin:
            graph.check(schedule_id, definition.parents, kin.edges, kin.names | {schedule_id: definition.name})
            yield

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

    async def _mirrored(self, view: ScheduleView, events: Sequence[Event], action: str, by: str) -> ScheduleView:
        subjects = {"schedule_id": view.schedule_id}
        await self._mirror(view.workspace, events, action, by, subjects, view.revision)
        return view

    async def _mirror(
        self,
        workspace: str,
        events: Sequence[Event],
        action: str,
        by: str,
        subjects: dict[str, str],
        revision: int,
    ) -> None:
        async with self.database.transaction() as connection:
            await project(connection, events)
            await audit.append(
                connection,
                by=by,
                action=f"schedule.{action}",
                workspace=workspace,
                subjects=subjects,
                revision=revision,
            )


def new_schedule_id(workspace: str, key: str | None) -> str:
    """`s` and twelve letters and digits: by chance, or always the same for one idempotency key."""
    if key is None:
        material = secrets.token_bytes(ID_BYTES)
    else:
        material = hashlib.sha256(f"{workspace}\0{key}".encode()).digest()
    return "s" + base64.b32encode(material).decode().lower()[:12]
