"""The executor of pipelines: freezes the current version when a run is admitted, and runs its steps.

Steps start when all that they need has succeeded, a few at a time. A failed step fails the run: what needs it
does not run, what does not need it still does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from domain import secrets
from domain.errors import Invalid
from domain.parameters import Reference, Resolved, resolve
from domain.pipeline import CommandStep, PipelineVersion, check, execution_order
from domain.run import RunState
from domain.values import Value
from executors import pipeline_payload, pipeline_secrets, step
from executors.pipeline_payload import PipelinePayload
from executors.pipeline_secrets import Opened
from executors.process import Guardians
from executors.protocol import Execution, Outcome, Payload, Prepared, Refused
from executors.vault import Vault

STEPS_AT_ONCE = 4


class PipelineMissing(Exception):
    """The workspace has no pipeline of this name."""


class PipelineUnreleased(Exception):
    """The pipeline has no current version."""


class PipelineCatalogue(Protocol):
    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        """What the pipeline's current pointer names now. Raises PipelineMissing or PipelineUnreleased."""


class PipelineExecutor:
    """Payload: `{"pipeline": <name>, "version": "current"}`, and `parameters` and `parameter_bindings` by name."""

    name = "pipeline"

    def __init__(self, catalogue: PipelineCatalogue, vault: Vault | None = None) -> None:
        self._catalogue = catalogue
        self._vault = vault or Vault()
        self._guardians = Guardians()

    async def seal(self, workspace: str, payload: Payload, before: Payload) -> Payload:
        version = await self._saved(workspace, pipeline_payload.read(payload).pipeline)
        return pipeline_secrets.seal(workspace, payload, before, version.definition.parameters, self._vault)

    async def validate(self, workspace: str, payload: Payload) -> str:
        asked = pipeline_payload.read(payload)
        self._resolved(workspace, asked, await self._saved(workspace, asked.pipeline), None)
        return f"{self.name}:{asked.pipeline}"

    async def _saved(self, workspace: str, pipeline: str) -> PipelineVersion:
        """What a schedule that is saved now would run."""
        try:
            return await self._catalogue.current(workspace, pipeline)
        except PipelineMissing:
            raise Invalid(
                "schedule.validation.target_not_found",
                f"This workspace has no pipeline '{pipeline}'.",
                field="payload.pipeline",
                hint="Save and release the pipeline first, or name an existing one.",
            ) from None
        except PipelineUnreleased:
            raise Invalid(
                "schedule.validation.target_not_released",
                f"The pipeline '{pipeline}' has no current version to follow.",
                field="payload.pipeline",
                hint="Release it, or switch its current version, then save again.",
            ) from None

    def _resolved(
        self, workspace: str, asked: PipelinePayload, version: PipelineVersion, reference: Reference | None
    ) -> Resolved:
        """The parameters' values, the secret ones sealed, and found to open. Raises Invalid."""
        declared = version.definition.parameters
        resolved = resolve(declared, asked.parameters, asked.parameter_bindings, reference)
        pipeline_secrets.opened(workspace, asked.pipeline, resolved, self._vault)
        return resolved

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        try:
            asked = pipeline_payload.read(payload)
        except Invalid as refusal:
            raise Refused("payload_invalid", refusal.message) from refusal
        version = await self._freeze(workspace, asked.pipeline)
        try:
            resolved = self._resolved(workspace, asked, version, reference)
        except Invalid as refusal:
            raise Refused("parameters_invalid", refusal.message) from refusal
        return Prepared(
            target=f"{self.name}:{asked.pipeline}",
            snapshot={
                "pipeline_id": version.pipeline_id,
                "pipeline": asked.pipeline,
                "version": version.version,
                "body_sha256": version.body_sha256,
                "resolved_parameters": secrets.masked(resolved),
            },
            folder_owner=asked.pipeline,
            run_retention_count=version.definition.run_retention_count,
            body={"version": version.model_dump(mode="json"), "parameters": resolved},
        )

    async def _freeze(self, workspace: str, pipeline: str) -> PipelineVersion:
        try:
            version = await self._catalogue.current(workspace, pipeline)
            check(version.definition)
        except PipelineMissing:
            raise Refused("target_not_found", f"The pipeline '{pipeline}' no longer exists.") from None
        except PipelineUnreleased:
            raise Refused("pointer_null", f"The pipeline '{pipeline}' has no current version.") from None
        except Invalid as refusal:
            raise Refused("payload_invalid", f"The pipeline '{pipeline}' can't run: {refusal.message}") from refusal
        return version

    async def execute(self, execution: Execution, progress: Callable[[str], None]) -> Outcome:
        frozen = _Frozen.model_validate(execution.prepared.body)
        workspace, pipeline = execution.identity.workspace, frozen.version.name
        parameters = pipeline_secrets.opened(workspace, pipeline, frozen.parameters, self._vault)
        work = _Steps(execution, parameters, progress, self._guardians)
        try:
            async with asyncio.timeout(execution.timeout_seconds):
                await work.run(execution_order(frozen.version.definition.steps))
        except TimeoutError:
            return work.timed_out()
        return work.outcome()


class _Frozen(Value):
    """What a prepared run executes."""

    version: PipelineVersion
    parameters: Resolved


class _Steps:
    """The steps of one execution, and what became of each so far."""

    def __init__(
        self, execution: Execution, parameters: Opened, progress: Callable[[str], None], guardians: Guardians
    ) -> None:
        self._execution = execution
        self._parameters = parameters
        self._guardians = guardians
        self._progress = progress
        self._slots = asyncio.Semaphore(STEPS_AT_ONCE)
        self._running: list[str] = []
        self._started = 0
        self._failures: dict[str, str] = {}

    async def run(self, ordered: tuple[CommandStep, ...]) -> None:
        tasks: dict[str, asyncio.Task[bool]] = {}
        async with asyncio.TaskGroup() as group:
            for one in ordered:
                tasks[one.id] = group.create_task(self._after([tasks[need] for need in one.needs], one))

    async def _after(self, needs: list[asyncio.Task[bool]], one: CommandStep) -> bool:
        """Whether the step succeeded; it isn't even tried when a step that it needs did not."""
        succeeded = [await need for need in needs]
        if not all(succeeded):
            self._progress(f"step {one.id} not run: a step that it needs did not succeed")
            return False
        async with self._slots:
            return await self._run(one)

    async def _run(self, one: CommandStep) -> bool:
        self._started += 1
        self._running.append(one.id)
        self._progress(f"step {one.id} started")
        failure = await self._attempts(one)
        self._running.remove(one.id)
        self._progress(f"step {one.id} failed: {failure}" if failure else f"step {one.id} succeeded")
        if failure is not None:
            self._failures[one.id] = failure
        return failure is None

    async def _attempts(self, one: CommandStep) -> str | None:
        """What went wrong with the last attempt. Each attempt has its own logs and its own result."""
        failure = await step.run(one, self._execution, self._parameters, self._guardians)
        if one.retry is None:
            return failure
        for attempt in range(1, one.retry.attempts):
            if failure is None:
                return None
            self._progress(f"step {one.id} failed and is tried again: {failure}")
            await asyncio.sleep(one.retry.pause_seconds * 2 ** (attempt - 1))
            failure = await step.run(one, self._execution, self._parameters, self._guardians)
        return failure

    def outcome(self) -> Outcome:
        if not self._failures:
            return Outcome(state=RunState.SUCCEEDED, steps_run=self._started)
        first, failure = next(iter(self._failures.items()))
        more = len(self._failures) - 1
        message = f"Step '{first}' {failure}" + (f" (and {more} more failed)" if more else "")
        return Outcome(state=RunState.FAILED, reason="execution_failed", message=message, steps_run=self._started)

    def timed_out(self) -> Outcome:
        during = ", ".join(f"'{step_id}'" for step_id in self._running) or "none"
        return Outcome(
            state=RunState.FAILED,
            reason="execution_timeout",
            message=f"The run was stopped after {self._execution.timeout_seconds} s; running then: {during}.",
            steps_run=self._started,
        )
