"""One workflow of a run, and what came of it.

    <run folder>/steps/<step>/stdout.log     what it returned, as JSON
    <run folder>/steps/<step>/stderr.log     its id, and what it failed with
    <run folder>/steps/<step>/result-1.json  how it ended

Each attempt is a workflow of its own, whose id follows from the execution, the group and the step.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import JsonValue
from temporalio.service import RPCError, RPCStatusCode

from domain import placeholders
from domain.pipeline import Step
from domain.run import RunState
from domain.workflow_call import WorkflowCall
from evidence import documents
from executors import step_logs
from executors.masking import masked
from executors.pipeline_secrets import Opened
from executors.protocol import Execution, Outcome
from executors.started_workflows import Workflows
from executors.step_logs import Begun

T = TypeVar("T")

GRACE_SECONDS = 5.0
"""How long a cancelled one may take to end before the run goes on without it."""

AGAIN_SECONDS = 1.0

REFUSALS = frozenset({RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED})
"""How Temporal says that asking again is of no use."""


async def run(
    step: Step, call: WorkflowCall, execution: Execution, parameters: Opened, workflows: Workflows
) -> str | None:
    """Starts it and waits for its end; None when it succeeded, else what went wrong, in words that follow the step's
    name. When cancelled, so is it, and its end is waited for a little. Raises OSError."""
    logs = await asyncio.to_thread(step_logs.begin, execution, step.id)
    attempt = _Attempt(step, execution, parameters, logs, workflows)
    try:
        outcome = await attempt.ended(call)
    except asyncio.CancelledError:
        stopped = await attempt.stopped()
        with suppress(OSError):
            await asyncio.to_thread(attempt.write, stopped)
        raise
    await asyncio.to_thread(attempt.write, outcome)
    return attempt.problem(outcome)


@dataclass(frozen=True)
class _Attempt:
    step: Step
    execution: Execution
    parameters: Opened
    logs: Begun
    workflows: Workflows
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def workflow_id(self) -> str:
        """An evaluation has steps of its own, and each attempt has logs of its own."""
        identity, attempt = self.execution.identity, self.logs.stdout.stem.removeprefix("stdout")
        part = "evaluation" if self.execution.evaluates is not None else identity.group
        return "/".join(name for name in (identity.execution_id, part, f"{self.step.id}{attempt}") if name)

    async def ended(self, call: WorkflowCall) -> Outcome:
        try:
            await _patiently(lambda: self._start(call))
            return await _patiently(lambda: self.workflows.ended(self.workflow_id))
        except RPCError as refusal:
            message = f"Temporal refused it: {refusal.message}"
            return Outcome(state=RunState.FAILED, reason="execution_failed", message=message)

    async def _start(self, call: WorkflowCall) -> None:
        shown, environment = self.parameters.shown, self.step.environment
        values = {**self.parameters.texts, **environment}
        alone = {name: value for name, value in shown.items() if name not in environment}
        await self.workflows.start(
            call.workflow,
            [placeholders.filled(argument, values, alone) for argument in call.args],
            workflow_id=self.workflow_id,
            task_queue=call.task_queue,
            timeout_seconds=self.step.timeout_seconds or self.execution.timeout_seconds,
            identity=self.execution.identity,
            step_id=self.step.id,
        )

    async def stopped(self) -> Outcome | None:
        """How it ended once it was cancelled; None when it goes on, or can't be seen to end."""
        with suppress(RPCError, TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self.workflows.cancel(self.workflow_id)
                return await self.workflows.ended(self.workflow_id)
        return None

    def problem(self, outcome: Outcome | None) -> str | None:
        if outcome is None or outcome.state is RunState.SUCCEEDED:
            return None
        said = f"is a workflow that did not succeed. {outcome.message or outcome.state}"
        return masked(said, self.parameters.hidden)

    def write(self, outcome: Outcome | None) -> None:
        ended_at, problem, stdout = datetime.now(UTC), self.problem(outcome), self.logs.stdout
        if outcome is not None and outcome.result is not None:
            printed = masked(json.dumps(outcome.result.content, ensure_ascii=False), self.parameters.hidden)
            stdout.write_text(printed + "\n", encoding="utf-8")
        told = "\n".join(filter(None, (f"workflow {self.workflow_id}", problem)))
        self.logs.stderr.write_text(told + "\n", encoding="utf-8")
        status = "stopped" if outcome is None else "failed" if problem else "succeeded"
        body: dict[str, JsonValue] = {
            "status": status,
            "workflow_id": self.workflow_id,
            "workflow_state": outcome.state if outcome is not None else None,
            "problem": problem,
            "duration_seconds": round((ended_at - self.began_at).total_seconds(), 6),
            "stdout": {"file": stdout.name, "bytes": stdout.stat().st_size, "bytes_left_out": 0},
        }
        documents.write(
            self.execution.folder,
            self.execution.identity,
            "result",
            body,
            step_id=self.step.id,
            started_at=self.began_at,
            completed_at=ended_at,
            status=status,
        )


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Its answer, however long Temporal is away: a worker that can't reach it stops its executions by itself."""
    while True:
        try:
            return await ask()
        except RPCError as error:
            if error.status in REFUSALS:
                raise
        await asyncio.sleep(AGAIN_SECONDS)
