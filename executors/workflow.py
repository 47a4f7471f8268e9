"""The executor of workflows: starts any workflow type on any task queue of the namespace and sees how it ends.

Its execution is the workflow itself. It needs no worker slot, and no worker of Almanac has to live for it to go on.
"""

from __future__ import annotations

from pydantic import JsonValue

from domain.errors import Invalid
from domain.parameters import Reference
from domain.values import Value
from executors import workflow_payload
from executors.protocol import Detached, Outcome, Payload, Prepared, Refused
from executors.started_workflows import Workflows


class _Frozen(Value, extra="ignore"):
    """What a prepared run starts; the rest of the snapshot is for readers."""

    workflow: str
    task_queue: str
    args: tuple[JsonValue, ...]
    id_prefix: str


class WorkflowExecutor:
    """Without workflows to start it checks payloads, as the API does, and launches nothing."""

    name = "workflow"

    def __init__(self, workflows: Workflows | None = None) -> None:
        self._workflows = workflows

    async def validate(self, workspace: str, payload: Payload) -> str:
        return workflow_payload.read(payload).target

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        try:
            asked = workflow_payload.read(payload)
            arguments = asked.arguments(reference)
        except Invalid as refusal:
            raise Refused("payload_invalid", refusal.message) from refusal
        return Prepared(
            target=asked.target,
            snapshot={
                "workflow": asked.workflow,
                "task_queue": asked.task_queue,
                "args": arguments,
                "id_prefix": asked.id_prefix,
            },
            folder_owner=f"_workflows/{asked.workflow}",
            body=None,
        )

    async def launch(self, execution: Detached) -> None:
        frozen = _Frozen.model_validate(execution.snapshot)
        await self._started.start(
            frozen.workflow,
            frozen.args,
            workflow_id=_workflow_id(execution),
            task_queue=frozen.task_queue,
            timeout_seconds=execution.timeout_seconds,
            identity=execution.identity,
        )

    async def observe(self, execution: Detached) -> Outcome:
        return await self._started.ended(_workflow_id(execution))

    async def cancel(self, execution: Detached) -> None:
        await self._started.cancel(_workflow_id(execution))

    @property
    def _started(self) -> Workflows:
        assert self._workflows is not None, "only a worker launches"
        return self._workflows


def _workflow_id(execution: Detached) -> str:
    return f"{_Frozen.model_validate(execution.snapshot).id_prefix}{execution.identity.execution_id}"
