"""Executing one run in a worker's slot: prepare, bind the folder, claim, record RUNNING, execute.

The order is what makes the ends honest: nothing is executed before its RUNNING record is committed, and that
record is written in the transaction of the one claim that can win.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError

from activities.retention import Retention
from domain import ids, messages
from domain.errors import Unavailable
from domain.events import RunChanged
from domain.identity import RunIdentity
from domain.lane import Launch
from domain.run import Advanced, Origin, Run, RunState, advance, hand_over
from domain.values import Value
from evidence import documents, folders
from executors.protocol import Execution, Outcome, Prepared, Refused
from executors.registry import Registry
from readmodel.claims import Claims

ANNOUNCED_AFTER_SECONDS = 2.0
LONGEST_SILENCE_SECONDS = 5


RUN_KINDS = {Origin.HOOK: "hook", Origin.MANUAL: "manual"}
"""Whatever else a run comes from, it is a schedule's."""


class ExecuteRun(Value):
    run: Run
    launch: Launch


class Executed(Value):
    """How the run ended. All before its end is already written."""

    change: Advanced


@dataclass(frozen=True)
class ExecutionActivities:
    client: Client
    executors: Registry
    claims: Claims
    storage: Path
    worker: str
    retention: Retention
    record_timeout_seconds: float = 5.0

    @activity.defn(name="almanac.execute_run")
    async def execute_run(self, order: ExecuteRun) -> Executed:
        try:
            prepared = await self._prepare(order)
            folder = await self._bind_folder(order.run, prepared)
            running = await self._claim(order.run, prepared, folder)
        except Refused as refused:
            refusal = Outcome(state=RunState.NOT_STARTED, reason=refused.reason, message=refused.message)
            return _ended(hand_over(order.run), refusal)
        if running is None:
            message = "Its start was claimed before, and that claim's execution did not report here."
            return _ended(order.run, Outcome(state=RunState.UNKNOWN, reason="start_unconfirmed", message=message))
        execution = _execution(running, order.launch, prepared, self.storage)
        await _record_metadata(execution, started=True)
        async with self._announced(running):
            outcome = await self._execute(running, order.launch, execution)
        await _record_metadata(execution, status=outcome.state)
        return _ended(running, outcome)

    async def _prepare(self, order: ExecuteRun) -> Prepared:
        try:
            executor = self.executors.for_run(order.run.executor)
            return await executor.prepare(order.run.workspace, order.launch.payload)
        except Unavailable as error:
            raise Refused("record_unwritable", error.message) from error
        except Refused:
            raise
        except Exception as error:
            activity.logger.exception("scheduler.prepare_failed")
            raise Refused("start_refused", f"Preparing it failed: {error}") from error

    async def _bind_folder(self, run: Run, prepared: Prepared) -> str:
        family: Literal["sched", "hook"] = "hook" if run.origin is Origin.HOOK else "sched"
        where = (self.storage, run.workspace, prepared.folder_owner)
        if prepared.run_retention_count is not None:
            self.retention.begin(run.workspace, prepared.folder_owner, prepared.run_retention_count)
        try:
            if run.origin is Origin.MANUAL:
                return await asyncio.to_thread(folders.take_slot, *where, run.run_id)
            return await asyncio.to_thread(folders.allocate, *where, family, run.run_id)
        except folders.FolderUnwritable as error:
            raise Refused("folder_unwritable", str(error)) from error

    async def _claim(self, run: Run, prepared: Prepared, folder: str) -> Run | None:
        """The one conditional write, None when somebody else had won it. Its transaction carries the RUNNING record
        too: a claim that can't be committed in time launches nothing."""
        now = datetime.now(UTC)
        execution_id = ids.execution_id(run.run_id)
        claimed = advance(
            run,
            RunState.STARTING,
            now,
            kind="claimed",
            data={"worker": self.worker, "run_folder": folder, "execution_id": execution_id},
            execution_id=execution_id,
            run_folder=folder,
            prepared=prepared.snapshot,
        )
        started = advance(claimed.run, RunState.RUNNING, now, kind="started")
        try:
            won = await self.claims.claim(
                started=(RunChanged(change=claimed), RunChanged(change=started)),
                run_id=run.run_id,
                execution_id=execution_id,
                worker=self.worker,
                timeout_seconds=self.record_timeout_seconds,
            )
        except Unavailable as error:
            raise Refused("record_unwritable", error.message) from error
        return started.run if won else None

    @asynccontextmanager
    async def _announced(self, run: Run) -> AsyncIterator[None]:
        """Tells the run's workflow that it runs, once it has run for a moment: a herd of short runs need not be
        announced, and the record is committed anyway."""
        telling = asyncio.create_task(self._announce(run))
        try:
            yield
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError, RPCError):
                await telling

    async def _announce(self, run: Run) -> None:
        await asyncio.sleep(ANNOUNCED_AFTER_SECONDS)
        handle = self.client.get_workflow_handle(ids.run_workflow_id(run.workspace, run.run_id))
        await handle.signal(messages.EXECUTION_STARTED_SIGNAL, messages.ExecutionStarted(run=run))

    async def _execute(self, run: Run, launch: Launch, execution: Execution) -> Outcome:
        executor = self.executors.for_run(run.executor)
        pulse = Pulse(min(launch.heartbeat_seconds, LONGEST_SILENCE_SECONDS))
        work = asyncio.create_task(executor.execute(execution, pulse.note))
        beating = asyncio.create_task(pulse.beat())
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            return await _cut_off(work)
        except Exception as error:
            activity.logger.exception("scheduler.execution_failed_unexpectedly")
            return Outcome(state=RunState.UNKNOWN, reason="start_failed", message=f"Its executor failed: {error}")
        finally:
            beating.cancel()


async def _record_metadata(execution: Execution, *, started: bool = False, status: RunState | None = None) -> None:
    """The folder's own account of its run. That it can't be written ends no run: the record in the database tells
    the same."""
    try:
        await asyncio.to_thread(
            documents.record_metadata,
            execution.folder,
            execution.identity,
            datetime.now(UTC),
            started=started,
            status=status,
        )
    except (OSError, documents.IdentityContradicted):
        activity.logger.exception("evidence.metadata_unwritten")


class Pulse:
    """Says that an execution is alive, with the last line it had for people. A heartbeat also brings a
    cancellation back, so it comes more often than its loss is counted; a short run needs none."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._line: str | None = None

    def note(self, line: str) -> None:
        self._line = line

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            activity.heartbeat(self._line)


async def _cut_off(work: asyncio.Task[Outcome]) -> Outcome:
    """Stops an execution whose activity was cancelled, and says by whom: a shutdown is not a person's cancel."""
    work.cancel()
    with suppress(asyncio.CancelledError):
        return await work
    details = activity.cancellation_details()
    if details is not None and details.worker_shutdown:
        return Outcome(state=RunState.ABORTED, reason="shutdown", message="Its worker shut down before it had ended.")
    return Outcome(state=RunState.CANCELLED, reason="cancelled", message="It was cancelled.")


def _execution(run: Run, launch: Launch, prepared: Prepared, storage: Path) -> Execution:
    assert run.run_folder is not None
    assert run.execution_id is not None
    identity = RunIdentity(
        run_kind=RUN_KINDS.get(run.origin, "schedule"),
        run_id=run.run_id,
        workspace=run.workspace,
        schedule_id=run.schedule_id,
        scheduled_for=run.scheduled_for,
        trigger_source=run.origin,
        execution_id=run.execution_id,
        run_folder=run.run_folder,
        plan_revision=run.schedule_revision,
    )
    folder = folders.run_folder_path(storage, run.workspace, prepared.folder_owner, run.run_folder)
    return Execution(
        identity=identity,
        prepared=prepared,
        folder=folder,
        reference_time=run.reference_time,
        timeout_seconds=launch.execution_timeout_seconds,
    )


def _ended(run: Run, outcome: Outcome) -> Executed:
    ended = advance(
        run, outcome.state, datetime.now(UTC), reason=outcome.reason, message=outcome.message, kind="finished"
    )
    return Executed(change=ended)
