"""The executor of pipelines: freezes the current version when a run is admitted, and runs its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pydantic import JsonValue

from domain import secrets
from domain.errors import Invalid
from domain.parameters import Reference, Resolved, resolve
from domain.pipeline import DRAFT, PipelineVersion, Selection, check, select
from domain.values import Value
from executors import pipeline_payload, pipeline_secrets
from executors.pipeline_payload import PipelinePayload
from executors.process import Guardians
from executors.protocol import Execution, Outcome, Payload, Prepared, Refused
from executors.started_workflows import Workflows
from executors.step import Means
from executors.steps import Work
from executors.vault import Vault


class PipelineMissing(Exception):
    """The workspace has no pipeline of this name."""


class PipelineUnreleased(Exception):
    """The pipeline has no current version."""


class PipelineCatalogue(Protocol):
    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        """What the pipeline's current pointer names now. Raises PipelineMissing or PipelineUnreleased."""

    async def draft_sha256(self, workspace: str, pipeline: str) -> str | None:
        """Of the pipeline's draft as it is now; None when the pipeline is gone."""


class PipelineExecutor:
    """Payload: `{"pipeline": <name>, "version": "current"}`, `parameters` and `parameter_bindings` by name, `groups`
    for only some of its groups and `step` for only one of its steps."""

    name = "pipeline"

    def __init__(
        self, catalogue: PipelineCatalogue, vault: Vault | None = None, workflows: Workflows | None = None
    ) -> None:
        self._catalogue = catalogue
        self._vault = vault or Vault()
        self._means = Means(Guardians(), workflows)

    async def seal(self, workspace: str, payload: Payload, before: Payload) -> Payload:
        version = await self._saved(workspace, pipeline_payload.read(payload).pipeline)
        return pipeline_secrets.seal(workspace, payload, before, version.definition.parameters, self._vault)

    async def validate(self, workspace: str, payload: Payload) -> str:
        asked = pipeline_payload.read(payload)
        version = await self._saved(workspace, asked.pipeline)
        self._resolved(workspace, asked, version, None)
        select(version.definition, asked.groups, asked.step)
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
            version = await self._freeze(workspace, asked.pipeline)
            selection = select(version.definition, asked.groups, asked.step)
        except Invalid as refusal:
            raise Refused("payload_invalid", refusal.message) from refusal
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
                **_part(asked),
            },
            folder_owner=asked.pipeline,
            run_retention_count=version.definition.run_retention_count,
            outlives_worker=selection.starts_workflows,
            body={
                "version": version.model_dump(mode="json"),
                "parameters": resolved,
                "selection": selection.model_dump(mode="json"),
            },
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

    async def recheck(self, workspace: str, prepared: Prepared) -> None:
        """A released version never changes; a draft may have been saved since it was frozen."""
        frozen = prepared.snapshot
        if frozen["version"] != DRAFT:
            return
        now = await self._catalogue.draft_sha256(workspace, str(frozen["pipeline"]))
        if now not in (None, frozen["body_sha256"]):
            raise Refused("version_changed", f"The draft of '{frozen['pipeline']}' was edited before it could start.")

    async def execute(self, execution: Execution, progress: Callable[[str], None]) -> Outcome:
        frozen = _Frozen.model_validate(execution.prepared.body)
        workspace, pipeline = execution.identity.workspace, frozen.version.name
        parameters = pipeline_secrets.opened(workspace, pipeline, frozen.parameters, self._vault)
        ttl = frozen.version.definition.result_ttl_seconds
        work = Work(execution, parameters, progress, self._means, result_ttl_seconds=ttl)
        try:
            async with asyncio.timeout(execution.timeout_seconds):
                await work.run(frozen.selection)
        except TimeoutError:
            return work.timed_out()
        return work.outcome()


def _part(asked: PipelinePayload) -> dict[str, JsonValue]:
    """Which part of the pipeline a run is of, where it isn't all of it."""
    groups: dict[str, JsonValue] = {"groups": list(asked.groups)} if asked.groups else {}
    return groups if asked.step is None else {**groups, "step": asked.step}


class _Frozen(Value):
    """What a prepared run executes."""

    version: PipelineVersion
    parameters: Resolved
    selection: Selection
