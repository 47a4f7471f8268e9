"""The executor of pipelines: freezes the current version when a run is admitted, and runs its steps.

Steps start when all that they need has succeeded, a few at a time. A failed step fails the run: what needs it
does not run, what does not need it still does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pydantic import JsonValue

from domain.errors import Invalid
from domain.pipeline import CommandStep, PipelineVersion, check, execution_order
from domain.run import RunState
from executors import step
from executors.process import Guardians
from executors.protocol import Execution, Outcome, Payload, Prepared, Refused

STEPS_AT_ONCE = 4


class PipelineMissing(Exception):
    """The workspace has no pipeline of this name."""


class PipelineUnreleased(Exception):
    """The pipeline has no current version."""


class PipelineCatalogue(Protocol):
    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        """What the pipeline's current pointer names now. Raises PipelineMissing or PipelineUnreleased."""


class PipelineExecutor:
    """Payload: exactly `{"pipeline": <name>, "version": "current"}`."""

    name = "pipeline"

    def __init__(self, catalogue: PipelineCatalogue) -> None:
        self._catalogue = catalogue
        self._guardians = Guardians()

    async def validate(self, workspace: str, payload: Payload) -> str:
        pipeline = _pipeline_named_in(payload)
        try:
            await self._catalogue.current(workspace, pipeline)
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
        return f"{self.name}:{pipeline}"

    async def prepare(self, workspace: str, payload: Payload) -> Prepared:
        try:
            pipeline = _pipeline_named_in(payload)
        except Invalid as refusal:
            raise Refused("payload_invalid", refusal.message) from refusal
        version = await self._freeze(workspace, pipeline)
        return Prepared(
            target=f"{self.name}:{pipeline}",
            snapshot={
                "pipeline_id": version.pipeline_id,
                "pipeline": pipeline,
                "version": version.version,
                "body_sha256": version.body_sha256,
            },
            folder_owner=pipeline,
            run_retention_count=version.definition.run_retention_count,
            body=version.model_dump(mode="json"),
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
        version = PipelineVersion.model_validate(execution.prepared.body)
        work = _Steps(execution, progress, self._guardians)
        try:
            async with asyncio.timeout(execution.timeout_seconds):
                await work.run(execution_order(version.definition.steps))
        except TimeoutError:
            return work.timed_out()
        return work.outcome()


class _Steps:
    """The steps of one execution, and what became of each so far."""

    def __init__(self, execution: Execution, progress: Callable[[str], None], guardians: Guardians) -> None:
        self._execution = execution
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
        failure = await step.run(one, self._execution, self._guardians)
        self._running.remove(one.id)
        self._progress(f"step {one.id} failed: {failure}" if failure else f"step {one.id} succeeded")
        if failure is not None:
            self._failures[one.id] = failure
        return failure is None

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


def _pipeline_named_in(payload: Payload) -> str:
    """Raises Invalid unless the payload is exactly what a pipeline's is."""
    for key in payload:
        if key not in ("pipeline", "version"):
            raise _key_refused(key)
    pipeline, version = payload.get("pipeline"), payload.get("version")
    if not isinstance(pipeline, str) or not pipeline:
        raise _refused("pipeline", "A pipeline's payload names the pipeline.", "Write its name, such as finance/daily.")
    if version != "current":
        raise _version_refused(version)
    return pipeline


def _key_refused(key: str) -> Invalid:
    if key.startswith("reference"):
        hint = "The reference time is the scheduler's own, frozen for each run. Leave it out."
    else:
        hint = 'A payload is {"pipeline": "<name>", "version": "current"}.'
    return _refused(key, f"'{key}' has no place in a pipeline's payload.", hint)


def _version_refused(version: JsonValue) -> Invalid:
    hint = 'A schedule follows the pipeline\'s current version: write "current".'
    if version == "latest":
        return _refused("version", "'latest' selects nothing: a draft may be newer than what is current.", hint)
    if version is None:
        return _refused("version", "The payload says no version.", hint)
    return _refused("version", "A schedule can't be tied to one version.", hint)


def _refused(key: str, message: str, hint: str) -> Invalid:
    return Invalid("schedule.validation.payload_invalid", message, field=f"payload.{key}", hint=hint)
