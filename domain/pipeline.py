"""A pipeline: a named, versioned definition of work. Save makes a draft, release an immutable version."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from domain.errors import Invalid
from domain.http_request import HttpRequest, check_request
from domain.parameters import Parameter, check_declared
from domain.values import Value
from domain.workflow_call import WorkflowCall, check_call

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*")
RESERVED_SEGMENTS = frozenset({"runs", "evaluation", "reviews", "versions"})

RESERVED_GROUPS = frozenset({"work", "steps"})
"""What else is in a run folder."""

StepId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]


DRAFT: Literal["draft"] = "draft"
VersionName = int | Literal["draft"]
"""A released version's number, or the draft as it is at the moment."""


class Retry(Value):
    """Trying a failed step again, for steps that may be run twice."""

    attempts: int = Field(ge=2, le=10)
    """How often it is run at most, the first time included."""
    pause_seconds: float = Field(default=1.0, ge=0, le=3600)
    """How long before the next attempt; twice as long before each further one."""


class Step(Value):
    """A part of a pipeline: a program, a request or a workflow."""

    id: StepId
    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """A program run with its arguments as given, never through a shell."""
    environment: dict[str, str] = {}
    http: HttpRequest | None = None
    workflow: WorkflowCall | None = None
    needs: tuple[StepId, ...] = ()
    timeout_seconds: int | None = Field(default=None, ge=1)
    idempotent: bool = False
    """Whether running it twice does no more than running it once. Only its author can know."""
    retry: Retry | None = None


class Group(Value):
    """The steps once more, with variables of their own and in a folder of their own below the run's."""

    name: StepId
    variables: Annotated[dict[VariableName, str], Field(max_length=100)] = {}
    """Environment variables; they come after what a step itself sets."""


class PipelineDefinition(Value):
    name: Annotated[str, Field(max_length=200)]
    description: str = ""
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=100)] = ()
    groups: Annotated[tuple[Group, ...], Field(max_length=100)] = ()
    """The steps run once for each, one group after the other; once, without a group, where there are none."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=200)]
    evaluation: Annotated[tuple[Step, ...], Field(max_length=50)] = ()
    """Steps that score a run whose steps have all succeeded. What becomes of them does not change how it ended."""
    result_ttl_seconds: int = Field(default=3600, ge=0, le=3600)
    """For so long a run's small result can be read after its end."""
    run_retention_count: int | None = Field(default=None, ge=1, le=100_000)
    """So many ended runs of each family (scheduled, webhook, manual) keep their files; all without it."""

    @property
    def body_sha256(self) -> str:
        body = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(body.encode()).hexdigest()


class PipelineView(Value):
    """A pipeline as readers see it. `current_version` is what its schedules run, a released version's number or
    `draft`; absent until there is one."""

    pipeline_id: str
    workspace: str
    name: str
    current_version: VersionName | None
    released_versions: tuple[int, ...]
    draft: PipelineDefinition
    draft_sha256: str
    changed_at: datetime
    changed_by: str


class PipelineVersion(Value):
    """What a run freezes: exactly this body ran, whatever is released or edited later."""

    pipeline_id: str
    name: str
    version: VersionName
    body_sha256: str
    definition: PipelineDefinition


class VersionRow(Value):
    """A released version in a list: who made it when, and whether it is what schedules run."""

    version: int
    body_sha256: str
    released_at: datetime
    released_by: str
    is_current: bool


def check(definition: PipelineDefinition) -> None:
    """Refuses a definition that could never run: a bad name, doubled step ids, needs that don't exist or go round,
    parameters that contradict themselves, retries of what may run only once."""
    if not NAME.fullmatch(definition.name) or RESERVED_SEGMENTS & set(definition.name.split("/")):
        raise Invalid(
            "pipeline.validation.name_invalid",
            "A pipeline's name is a path of lower-case words, such as finance/daily/revenue; "
            "'runs', 'evaluation', 'reviews' and 'versions' are reserved.",
            field="name",
        )
    _check_steps(definition.steps, "steps")
    _check_steps(definition.evaluation, "evaluation")
    _check_groups(definition.groups)
    _check_placeholders(definition)
    check_declared(definition.parameters)


def _check_steps(steps: tuple[Step, ...], field: str) -> None:
    seen: set[str] = set()
    for index, step in enumerate(steps):
        if step.id in seen:
            raise Invalid(
                "pipeline.validation.step_duplicate",
                f"The step id '{step.id}' is used twice.",
                field=f"{field}.{index}.id",
            )
        seen.add(step.id)
        if sum(kind is not None for kind in (step.command, step.http, step.workflow)) != 1:
            raise Invalid(
                "pipeline.validation.step_kind",
                f"Step '{step.id}' is not exactly one of a command, a request and a workflow.",
                field=f"{field}.{index}",
                hint="Give it one of 'command', 'http' and 'workflow'.",
            )
        if step.retry is not None and not step.idempotent:
            raise Invalid(
                "pipeline.validation.retry_not_idempotent",
                f"Step '{step.id}' is tried again, and does not say that it may run twice.",
                field=f"{field}.{index}.retry",
                hint="Write 'idempotent: true' if that is so; else leave 'retry' out.",
            )
    execution_order(steps, field)


def _check_placeholders(definition: PipelineDefinition) -> None:
    """What requests and workflows may name: each parameter, and what every group sets. An evaluation is of no group. A
    workflow may name no secret, for Temporal keeps its arguments."""
    parameters = {parameter.name for parameter in definition.parameters}
    secret = {parameter.name for parameter in definition.parameters if parameter.secret}
    of_groups = [set(group.variables) for group in definition.groups]
    common = set.intersection(*of_groups) if of_groups else set()
    for field, steps, known in (
        ("steps", definition.steps, parameters | common),
        ("evaluation", definition.evaluation, parameters),
    ):
        for index, step in enumerate(steps):
            if step.http is not None:
                check_request(step.http, known, f"{field}.{index}.http")
            if step.workflow is not None:
                check_call(step.workflow, known - secret, f"{field}.{index}.workflow")


def _check_groups(groups: tuple[Group, ...]) -> None:
    seen: set[str] = set()
    for index, group in enumerate(groups):
        if group.name in seen or group.name in RESERVED_GROUPS:
            why = "is used twice" if group.name in seen else "is kept for the run folder's own parts"
            raise Invalid(
                "pipeline.validation.group_name",
                f"The group name '{group.name}' {why}.",
                field=f"groups.{index}.name",
                hint="Give the group another name.",
            )
        seen.add(group.name)


class Selection(Value):
    """What of a pipeline a run executes."""

    groups: tuple[Group, ...]
    """Empty where the pipeline has none: then its steps run once, in the run folder itself."""
    steps: tuple[Step, ...]
    """So that each comes after all that it needs."""
    evaluation: tuple[Step, ...]
    """Empty for a part of a run: a score is that of a whole one."""

    @property
    def starts_workflows(self) -> bool:
        """Which go on when the worker that waits for them is lost."""
        return any(step.workflow is not None for step in (*self.steps, *self.evaluation))


def select(definition: PipelineDefinition, groups: tuple[str, ...] | None, step: str | None) -> Selection:
    """All of it, only these groups, or only this step, without those that it needs. Raises Invalid
    `schedule.validation.group_unknown` and `schedule.validation.step_unknown`."""
    known = {group.name: group for group in definition.groups}
    for index, name in enumerate(groups or ()):
        if name not in known:
            raise Invalid(
                "schedule.validation.group_unknown",
                f"The pipeline has no group '{name}'.",
                field=f"payload.groups.{index}",
                hint=f"Its groups: {', '.join(known)}." if known else "It has no groups.",
            )
    ordered = execution_order(definition.steps)
    alone = tuple(one.model_copy(update={"needs": ()}) for one in ordered if one.id == step)
    if step is not None and not alone:
        raise Invalid(
            "schedule.validation.step_unknown",
            f"The pipeline has no step '{step}'.",
            field="payload.step",
            hint=f"Its steps: {', '.join(one.id for one in definition.steps)}.",
        )
    is_whole = groups is None and step is None
    return Selection(
        groups=tuple(group for group in definition.groups if groups is None or group.name in groups),
        steps=alone or ordered,
        evaluation=execution_order(definition.evaluation, "evaluation") if is_whole else (),
    )


def execution_order(steps: tuple[Step, ...], field: str = "steps") -> tuple[Step, ...]:
    """The steps so that each comes after all that it needs, otherwise in the order written."""
    by_id = {step.id: step for step in steps}
    for index, step in enumerate(steps):
        unknown = next((need for need in step.needs if need not in by_id), None)
        if unknown is not None:
            raise Invalid(
                "pipeline.validation.needs_unknown",
                f"Step '{step.id}' needs '{unknown}', which is not a step of this pipeline.",
                field=f"{field}.{index}.needs",
            )
    ordered: dict[str, Step] = {}
    while len(ordered) < len(steps):
        ready = [s for s in steps if s.id not in ordered and all(need in ordered for need in s.needs)]
        if not ready:
            cycle = ", ".join(s.id for s in steps if s.id not in ordered)
            raise Invalid(
                "pipeline.validation.needs_cycle",
                f"These steps need each other in a circle: {cycle}.",
                field=field,
            )
        ordered[ready[0].id] = ready[0]
    return tuple(ordered.values())
