"""Workflows of other people that an execution starts, on any task queue of the same Temporal namespace.

Each has an id that follows from its execution, so Temporal itself refuses a second one; and it is told whose it is: in
its memo under `almanac`, and in the header `almanac-run-identity` for what looks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload as WirePayload
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.converter import PayloadConverter
from temporalio.exceptions import CancelledError, TerminatedError, WorkflowAlreadyStartedError
from temporalio.exceptions import TimeoutError as WorkflowTimedOut
from temporalio.service import RPCError, RPCStatusCode

from domain.identity import RunIdentity
from domain.run import RunState
from executors.protocol import Outcome, Result, TooLarge

MEMO = "almanac"
HEADER = "almanac-run-identity"

LONGEST_WORDS = 1000
"""Characters of what a workflow says of its failure."""


class Workflows:
    def __init__(self, client: Client) -> None:
        config = client.config()
        config["interceptors"] = [*config["interceptors"], _TellsIdentity()]
        self._client = Client(**config)

    async def start(
        self,
        workflow: str,
        args: Sequence[JsonValue],
        *,
        workflow_id: str,
        task_queue: str,
        timeout_seconds: int | None,
        identity: RunIdentity,
        step_id: str | None = None,
    ) -> None:
        """One that was started before under this id is not started again, whether it still goes on or has ended. With a
        timeout Temporal itself ends it then, all its runs taken together. Raises RPCError."""
        told = {**identity.model_dump(mode="json", exclude_none=True), **({"step_id": step_id} if step_id else {})}
        with suppress(WorkflowAlreadyStartedError):
            await self._client.start_workflow(
                workflow,
                args=args,
                id=workflow_id,
                task_queue=task_queue,
                execution_timeout=timedelta(seconds=timeout_seconds) if timeout_seconds else None,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                memo={MEMO: told},
            )

    async def ended(self, workflow_id: str) -> Outcome:
        """How it ended, once it has, those runs included that it went on as or was reset to. Raises RPCError."""
        handle = self._client.get_workflow_handle(workflow_id)
        while True:
            outcome = await self._ended(handle)
            if outcome.state is RunState.UNKNOWN or not await _goes_on(handle):
                return outcome

    async def _ended(self, handle: WorkflowHandle[Any, Any]) -> Outcome:
        try:
            return _succeeded(await handle.result())
        except WorkflowFailureError as failure:
            return _unsuccessful(failure.cause)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return _missing(handle.id)
            raise
        except Exception as error:
            # It is written in a way that this worker has no codec for; there is no limit to what that may raise.
            return await _unreadable(handle, error)

    async def cancel(self, workflow_id: str) -> None:
        """Asks it to end. One that has ended, or is not there, is no error. Raises RPCError."""
        try:
            await self._client.get_workflow_handle(workflow_id).cancel()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise


async def _goes_on(handle: WorkflowHandle[Any, Any]) -> bool:
    """A workflow that is reset goes on as another run, which the one that was reset knows nothing of."""
    try:
        return (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise


async def _unreadable(handle: WorkflowHandle[Any, Any], error: Exception) -> Outcome:
    """Raises `error` while it goes on."""
    status = (await handle.describe()).status
    if status is None or status is WorkflowExecutionStatus.RUNNING:
        raise error
    if status is WorkflowExecutionStatus.COMPLETED:
        return Outcome(state=RunState.SUCCEEDED, message="Its result can't be read here.")
    message = f"It ended as {status.name.lower()}, and the rest can't be read here ({type(error).__name__})."
    return Outcome(state=RunState.FAILED, reason="execution_failed", message=message)


def _succeeded(result: Any) -> Outcome:
    try:
        return Outcome(state=RunState.SUCCEEDED, result=None if result is None else Result.of(result))
    except TooLarge:
        return Outcome(state=RunState.SUCCEEDED, message="Its result is too large to be kept here; Temporal has it.")
    except (TypeError, ValueError, RecursionError):
        return Outcome(state=RunState.SUCCEEDED, message="Its result is not JSON that is kept here; Temporal has it.")


def _unsuccessful(cause: BaseException) -> Outcome:
    """Someone who terminates a workflow stops it in the middle; someone who cancels it lets it come to an end."""
    match cause:
        case CancelledError():
            return Outcome(state=RunState.CANCELLED, reason="cancelled", message="It was cancelled.")
        case TerminatedError():
            return Outcome(
                state=RunState.FAILED, reason="execution_failed", message=f"It was terminated: {_said(cause)}"
            )
        case WorkflowTimedOut():
            message = "Temporal ended it, because it took longer than it may."
            return Outcome(state=RunState.FAILED, reason="execution_timeout", message=message)
        case _:
            return Outcome(state=RunState.FAILED, reason="execution_failed", message=f"It failed: {_said(cause)}")


def _said(cause: BaseException) -> str:
    """The failure, and what was at its root."""
    root = cause
    while root.__cause__ is not None:
        root = root.__cause__
    words = str(cause) or type(cause).__name__
    said = words if root is cause or not str(root) else f"{words}: {root}"
    return said if len(said) <= LONGEST_WORDS else f"{said[: LONGEST_WORDS - 1]}…"


def _missing(workflow_id: str) -> Outcome:
    message = f"Temporal has no workflow {workflow_id}."
    return Outcome(state=RunState.UNKNOWN, reason="execution_missing", message=message)


class _TellsIdentity(Interceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        return _Outbound(next)


class _Outbound(OutboundInterceptor):
    async def start_workflow(
        self,
        input: StartWorkflowInput,  # noqa: A002 - the SDK's name
    ) -> WorkflowHandle[Any, Any]:
        told = (input.memo or {})[MEMO]
        header: WirePayload = PayloadConverter.default.to_payload(told)
        input.headers = {**input.headers, HEADER: header}
        return await super().start_workflow(input)
