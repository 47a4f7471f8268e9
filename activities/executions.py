"""Executing one run in a worker's slot: prepare, bind the folder, claim, record RUNNING, execute.

The order is what makes the ends honest: nothing is executed before its RUNNING record is committed, and that
record is written in the transaction of the one claim that can win. How the execution ended is written down, in the
run folder and beside the claim, before it is reported, so that it is known even where the report is lost.
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

from activities.account import Account, folder_of, identity_of
from activities.lifeline import Lifeline
from activities.retention import Retention
from domain import frozen, ids, messages
from domain.authority import SYSTEM, Identity, Permission
from domain.errors import NotFound, Unavailable
from domain.events import RunChanged
from domain.lane import Launch
from domain.parameters import Reference
from domain.run import Advanced, Origin, Run, RunState, advance, hand_over
from domain.values import Value
from evidence import folders
from evidence.book import SLOT
from executors.protocol import (
    DetachedExecutor,
    EvidenceRun,
    Execution,
    Outcome,
    Prepared,
    Rechecks,
    Refused,
    SlotExecutor,
)
from executors.registry import Registry
from readmodel.claims import Claims, ClaimUnconfirmed
from readmodel.tables import ExecutionStatus
from readmodel.workspaces import Workspaces

ANNOUNCED_AFTER_SECONDS = 2.0
AGAIN_SECONDS = 1.0


class ExecuteRun(Value):
    run: Run
    launch: Launch


class Executed(Value):
    """How the run ended; all before its end is already written. None when this attempt has launched nothing and
    can't tell whether another has."""

    change: Advanced | None
    detached: Advanced | None = None
    """Instead of an end: the run is claimed and recorded as running, and what it runs is yet to be launched, by
    somebody who needs no slot."""


class _Stopped(Exception):
    """Asked to stop before anything was claimed."""


@dataclass(frozen=True)
class ExecutionActivities:
    client: Client
    executors: Registry
    claims: Claims
    account: Account
    workspaces: Workspaces
    storage: Path
    worker: str
    retention: Retention
    record_timeout_seconds: float = 5.0
    identity: Identity = SYSTEM
    """Who runs are started as, whoever wrote their schedule or asked for them."""

    @activity.defn(name="almanac.execute_run")
    async def execute_run(self, order: ExecuteRun) -> Executed:
        async with Lifeline(self.client, order.launch.heartbeat_seconds) as lifeline:
            return await lifeline.carry(self._run(order, lifeline))

    async def _run(self, order: ExecuteRun, lifeline: Lifeline) -> Executed:
        try:
            prepared = await self._prepare(order)
            folder = await self._bind_folder(order.run, prepared)
            await self._recheck(order.run, prepared)
            if lifeline.stopping:
                raise _Stopped
            started = await self._claim(order.run, prepared, folder)
        except Refused as refused:
            refusal = Outcome(state=RunState.NOT_STARTED, reason=refused.reason, message=refused.message)
            return _ended(hand_over(order.run), refusal)
        except _Stopped:
            stopped = _stopped()
            return _ended(order.run, stopped) if stopped.state is RunState.CANCELLED else Executed(change=None)
        if started is None:
            return Executed(change=None)
        running = started.run
        await self.account.begin(running)
        executor = self.executors.for_run(running.executor)
        if not isinstance(executor, SlotExecutor):
            return Executed(change=None, detached=started)
        execution = _execution(running, order.launch, prepared, self.storage)
        async with self._announced(started):
            outcome = await self._execute(executor, execution, lifeline)
        await self.account.close(running, outcome)
        return _ended(running, outcome)

    async def _prepare(self, order: ExecuteRun) -> Prepared:
        missing = self.identity.lacks(Permission.PIPELINE_READ, Permission.PIPELINE_EXECUTE)
        if missing is not None:
            raise Refused("authority_refused", f"{self.identity.name} lacks the permission {missing}.")
        try:
            if not await self.workspaces.is_active(order.run.workspace):
                raise Refused("workspace_inactive", f"The workspace {order.run.workspace} is inactive.")
            executor = self.executors.for_run(order.run.executor)
            reference = Reference(at=order.run.reference_time, zone=order.run.reference_zone)
            return await executor.prepare(order.run.workspace, order.launch.payload, reference)
        except Unavailable as error:
            raise Refused("record_unwritable", error.message) from error
        except Refused:
            raise
        except Exception as error:
            activity.logger.exception("scheduler.prepare_failed")
            raise Refused("start_refused", f"Preparing it failed: {error}") from error

    async def _bind_folder(self, run: Run, prepared: Prepared) -> str | None:
        """None for a review, which has a folder of its own that is no run folder."""
        family: Literal["sched", "hook"] = "hook" if run.origin is Origin.HOOK else "sched"
        where = (self.storage, run.workspace, prepared.folder_owner)
        if prepared.run_retention_count is not None:
            self.retention.begin(run.workspace, prepared.folder_owner, prepared.run_retention_count)
        try:
            if prepared.evidence is not None:
                await asyncio.to_thread(folders.make_review_folder, *where, run.run_id)
                return None
            if run.origin is Origin.MANUAL:
                await self._check_slot(run, await asyncio.to_thread(folders.slot_owner, *where))
                return await asyncio.to_thread(folders.take_slot, *where, run.run_id)
            return await asyncio.to_thread(folders.allocate, *where, family, run.run_id)
        except folders.FolderUnwritable as error:
            raise Refused("folder_unwritable", str(error)) from error

    async def _recheck(self, run: Run, prepared: Prepared) -> None:
        executor = self.executors.for_run(run.executor)
        if not isinstance(executor, Rechecks):
            return
        try:
            await executor.recheck(run.workspace, prepared)
        except Unavailable as error:
            raise Refused("record_unwritable", error.message) from error

    async def _check_slot(self, run: Run, owner: str | None) -> None:
        """The lane sees to it that manual runs take turns. A lane that was ended by hand can't, and then the folder of
        a run that goes on must not be moved away under its steps."""
        if owner is None or owner == run.run_id:
            return
        try:
            other = await self.retention.queries.run(run.workspace, owner)
        except NotFound:
            return
        except Unavailable as error:
            raise Refused("record_unwritable", error.message) from error
        if other.state in (RunState.STARTING, RunState.RUNNING):
            raise Refused(
                "start_refused", f"The manual run {owner} still goes on in {SLOT}. Wait for its end, or cancel it."
            )

    def _is_detached(self, run: Run) -> bool:
        return isinstance(self.executors.for_run(run.executor), DetachedExecutor)

    async def _claim(self, run: Run, prepared: Prepared, folder: str | None) -> Advanced | None:
        """The one conditional write, None when somebody else had won it. Its transaction carries the RUNNING record
        too: a claim that can't be committed in time launches nothing."""
        now = datetime.now(UTC)
        execution_id = ids.execution_id(run.run_id)
        claimed = advance(
            run,
            RunState.STARTING,
            now,
            kind="claimed",
            data={
                "worker": self.worker,
                "identity": self.identity.name,
                "run_folder": folder,
                "execution_id": execution_id,
            },
            execution_id=execution_id,
            run_folder=folder,
            prepared=frozen.frozen(
                prepared.snapshot,
                prepared.folder_owner,
                detached=self._is_detached(run),
                outlives_worker=prepared.outlives_worker,
            ),
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
        except ClaimUnconfirmed as doubt:
            await self._give_up_claim(run, execution_id, doubt)
            return None
        return started if won else None

    async def _give_up_claim(self, run: Run, execution_id: str, doubt: ClaimUnconfirmed) -> None:
        """Waits until it is certain what became of a claim that nothing may be launched on any more. Raises Refused
        where that is known to be nothing; returns when somebody else's claim came first."""
        message = f"Its RUNNING record was not committed in time, so nothing was launched: {doubt.message}"
        while True:
            try:
                claim = await self.claims.void(run_id=run.run_id, execution_id=execution_id)
                if claim is None:
                    raise Refused("record_unwritable", message)
                if claim.worker != self.worker or claim.status is not ExecutionStatus.CLAIMED:
                    return
                await self.claims.finish(
                    execution_id,
                    outcome=RunState.NOT_STARTED,
                    at=datetime.now(UTC),
                    reason="record_unwritable",
                    message=message,
                )
                raise Refused("record_unwritable", message)
            except Unavailable:
                await asyncio.sleep(AGAIN_SECONDS)

    @asynccontextmanager
    async def _announced(self, started: Advanced) -> AsyncIterator[None]:
        """Tells the run's workflow and its schedule that it runs, once it has run for a moment: a herd of short runs
        need not be announced, and the record is committed anyway."""
        telling = asyncio.create_task(self._announce(started))
        try:
            yield
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError, RPCError):
                await telling

    async def _announce(self, started: Advanced) -> None:
        await asyncio.sleep(ANNOUNCED_AFTER_SECONDS)
        run = started.run
        own = self.client.get_workflow_handle(ids.run_workflow_id(run.workspace, run.run_id))
        await own.signal(messages.EXECUTION_STARTED_SIGNAL, messages.ExecutionStarted(run=run))
        if run.schedule_id is None:
            return
        schedule = self.client.get_workflow_handle(ids.schedule_workflow_id(run.workspace, run.schedule_id))
        await schedule.signal(messages.RUN_REPORT_SIGNAL, messages.RunReport(changes=(started,)))

    async def _execute(self, executor: SlotExecutor, execution: Execution, lifeline: Lifeline) -> Outcome:
        work = asyncio.create_task(executor.execute(execution, lifeline.progress))
        await lifeline.watch(work)
        try:
            return await work
        except asyncio.CancelledError:
            return _stopped()
        except Exception as error:
            activity.logger.exception("scheduler.execution_failed_unexpectedly")
            return Outcome(state=RunState.UNKNOWN, reason="start_failed", message=f"Its executor failed: {error}")


def _stopped() -> Outcome:
    """How an execution ends that was told to stop, and by whom: neither a shutdown nor lost contact is a person's
    cancel."""
    details = activity.cancellation_details()
    if details is not None and details.cancel_requested:
        return Outcome(state=RunState.CANCELLED, reason="cancelled", message="It was cancelled.")
    if details is not None and details.worker_shutdown:
        return Outcome(state=RunState.ABORTED, reason="shutdown", message="Its worker shut down before it had ended.")
    return Outcome(state=RunState.ABORTED, message="Its worker had lost contact with the scheduler and stopped it.")


def _execution(run: Run, launch: Launch, prepared: Prepared, storage: Path) -> Execution:
    return Execution(
        identity=identity_of(run),
        prepared=prepared,
        folder=folder_of(storage, run),
        reviews=_reviewed(storage, run.workspace, prepared.evidence) if prepared.evidence else None,
        reference_time=run.reference_time,
        timeout_seconds=launch.execution_timeout_seconds,
    )


def _reviewed(storage: Path, workspace: str, evidence: EvidenceRun) -> Path:
    """Where the reviewed run's files are now: a manual run's leave the slot in time."""
    where = (storage, workspace, evidence.owner)
    return folders.run_folder_path(*where, folders.place_of(*where, evidence.run_id) or evidence.run_folder)


def _ended(run: Run, outcome: Outcome) -> Executed:
    ended = advance(
        run, outcome.state, datetime.now(UTC), reason=outcome.reason, message=outcome.message, kind="finished"
    )
    return Executed(change=ended)
