"""The executor of reviews: runs a pipeline that looks at an existing run of another, or of itself.

Payload: `{"pipeline": <whose run is reviewed>, "pipeline_to_run": <what reviews it>, "select": "latest_succeeded",
"latest_terminal" or a run's id}`. The exact run is frozen when the review is admitted. A review produces nothing, so it
gets no run folder; its own documents lie in `reviews/<run id>` of the pipeline that reviews.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from domain.errors import Invalid
from domain.parameters import Reference
from domain.run import FINAL_STATES, Run, RunState
from executors.pipeline import PipelineCatalogue, PipelineExecutor, PipelineMissing, PipelineUnreleased
from executors.protocol import EvidenceRun, Execution, Outcome, Payload, Prepared, Refused

KEYS = ("pipeline", "pipeline_to_run", "select")
SELECTIONS = {"latest_succeeded": frozenset({RunState.SUCCEEDED}), "latest_terminal": FINAL_STATES}


class PastRuns(Protocol):
    async def latest(self, workspace: str, pipeline: str, states: frozenset[RunState]) -> Run | None:
        """The run of the pipeline that ended last in one of these states and whose files are there."""

    async def of(self, workspace: str, pipeline: str, run_id: str) -> Run | None:
        """That run, if it is one of the pipeline's that has ended and whose files are there."""


class _Asked(NamedTuple):
    pipeline: str
    pipeline_to_run: str
    select: str

    @property
    def payload(self) -> Payload:
        """As the pipeline executor reads it."""
        return {"pipeline": self.pipeline_to_run, "version": "current"}


class ReviewExecutor:
    name = "review"

    def __init__(self, pipelines: PipelineExecutor, catalogue: PipelineCatalogue, runs: PastRuns) -> None:
        self._pipelines = pipelines
        self._catalogue = catalogue
        self._runs = runs

    async def validate(self, workspace: str, payload: Payload) -> str:
        asked = _read(payload)
        try:
            target = await self._pipelines.validate(workspace, asked.payload)
        except Invalid as refusal:
            if refusal.field != "payload.pipeline":
                raise
            raise Invalid(
                refusal.code, refusal.message, field="payload.pipeline_to_run", hint=refusal.hint
            ) from refusal
        await self._check_reviewed(workspace, asked)
        return target

    async def _check_reviewed(self, workspace: str, asked: _Asked) -> None:
        """A pipeline without any run yet may be reviewed later; one that is not there, and a run that is not, never."""
        try:
            await self._catalogue.current(workspace, asked.pipeline)
        except PipelineMissing:
            message = f"This workspace has no pipeline '{asked.pipeline}' to review."
            raise Invalid("schedule.validation.target_not_found", message, field="payload.pipeline") from None
        except PipelineUnreleased:
            pass
        if asked.select not in SELECTIONS and await self._runs.of(workspace, asked.pipeline, asked.select) is None:
            raise Invalid(
                "schedule.validation.run_not_found",
                f"'{asked.select[:80]}' is no ended run of the pipeline '{asked.pipeline}' that still has its files.",
                field="payload.select",
                hint=f"Name such a run, or select {' or '.join(SELECTIONS)}.",
            )

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        try:
            asked = _read(payload)
        except Invalid as refusal:
            raise Refused("payload_invalid", refusal.message) from refusal
        prepared = await self._pipelines.prepare(workspace, asked.payload, reference)
        states = SELECTIONS.get(asked.select)
        run = (
            await self._runs.of(workspace, asked.pipeline, asked.select)
            if states is None
            else await self._runs.latest(workspace, asked.pipeline, states)
        )
        if run is None:
            message = f"The pipeline '{asked.pipeline}' has no run to review: {asked.select}."
            raise Refused("snapshot_unresolved", message)
        assert run.run_folder is not None
        reviewed: dict[str, JsonValue] = {
            "reviewed_pipeline": asked.pipeline,
            "evidence_run_id": run.run_id,
            "evidence_run_folder": run.run_folder,
        }
        evidence = EvidenceRun(run_id=run.run_id, owner=asked.pipeline, run_folder=run.run_folder)
        return prepared.model_copy(update={"snapshot": {**prepared.snapshot, **reviewed}, "evidence": evidence})

    async def recheck(self, workspace: str, prepared: Prepared) -> None:
        await self._pipelines.recheck(workspace, prepared)

    async def execute(self, execution: Execution, progress: Callable[[str], None]) -> Outcome:
        return await self._pipelines.execute(execution, progress)


def _read(payload: Payload) -> _Asked:
    """Raises Invalid `schedule.validation.payload_invalid` unless the payload is exactly what a review's is."""
    hint = "A review's payload has `pipeline` (whose run), `pipeline_to_run` (what reviews it) and `select`, all text."
    for key in payload:
        if key not in KEYS:
            raise Invalid(
                "schedule.validation.payload_invalid",
                f"'{key}' has no place in a review's payload.",
                field=f"payload.{key}",
                hint=hint,
            )
    values: list[str] = []
    for key in KEYS:
        value = payload.get(key)
        if not isinstance(value, str) or not value:
            raise Invalid(
                "schedule.validation.payload_invalid",
                f"A review's payload needs '{key}'.",
                field=f"payload.{key}",
                hint=hint,
            )
        values.append(value)
    return _Asked(*values)
