"""Workflows as steps: real workflows of a real worker, what they are given, and what their end is for the run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from domain.errors import Invalid
from domain.parameters import Parameter, ParameterType
from domain.pipeline import Group, PipelineDefinition, Retry, Step, check
from domain.run import RunState
from executors.pipeline import PipelineExecutor
from executors.protocol import Payload
from executors.started_workflows import Workflows
from tests.executors.test_pipeline import PAYLOAD, REFERENCE, Catalogue, Ran
from tests.foreign_workflows import QUEUE, foreign_worker
from tests.waiting import eventually

pytestmark = pytest.mark.stack

COUNT = Parameter(name="count", type=ParameterType.INTEGER)


@pytest.fixture
async def foreign(client: Client) -> AsyncIterator[Client]:
    async with foreign_worker(client):
        yield client


def calling(kind: str, *args: Any, **more: Any) -> Step:
    call = {"workflow": kind, "task_queue": QUEUE, "args": list(args)}
    return Step.model_validate({"id": "call", "workflow": call, **more})


def executor(client: Client, step: Step, *parameters: Parameter, **more: Any) -> PipelineExecutor:
    definition = PipelineDefinition(name="finance/close", steps=(step,), parameters=parameters, **more)
    check(definition)
    return PipelineExecutor(Catalogue(finance__close=definition), workflows=Workflows(client))


def giving(**parameters: Any) -> Payload:
    return {**PAYLOAD, "parameters": parameters}


def ran(folder: Path, workspace: str) -> Ran:
    """With an execution's id that no other test has."""
    return Ran(folder, execution_id=f"e-{workspace}")


async def test_it_is_given_values_and_what_it_returns_is_kept(tmp_path: Path, foreign: Client, workspace: str) -> None:
    done = ran(tmp_path, workspace)
    step = calling("Echo", "${count}", {"n": "no ${count}", "price": "$$5"})
    outcome = await done.outcome(executor(foreign, step, COUNT), giving(count=3))
    assert outcome.state is RunState.SUCCEEDED
    assert json.loads(done.output("call")) == [3, {"n": "no 3", "price": "$5"}]
    handle = foreign.get_workflow_handle(f"e-{workspace}/call")
    assert await handle.result() == [3, {"n": "no 3", "price": "$5"}]
    told = (await (await handle.describe()).memo())["almanac"]
    assert (told["run_id"], told["step_id"]) == (done.identity.run_id, "call")
    result = done.result("call")
    assert (result["status"], result["body"]["workflow_id"]) == ("succeeded", f"e-{workspace}/call")


async def test_its_failure_is_the_step_s(tmp_path: Path, foreign: Client, workspace: str) -> None:
    done = ran(tmp_path, workspace)
    outcome = await done.outcome(executor(foreign, calling("Fail")))
    assert (outcome.state, outcome.reason) == (RunState.FAILED, "execution_failed")
    assert "the ledger is closed" in str(outcome.message)
    assert "the ledger is closed" in (done.folder / "steps/call/stderr.log").read_text()
    assert done.result("call")["status"] == "failed"


async def test_each_attempt_is_a_workflow_of_its_own(tmp_path: Path, foreign: Client, workspace: str) -> None:
    step = calling("Fail", idempotent=True, retry=Retry(attempts=2, pause_seconds=0))
    await ran(tmp_path, workspace).outcome(executor(foreign, step))
    for name in ("call", "call-2"):
        description = await foreign.get_workflow_handle(f"e-{workspace}/{name}").describe()
        assert description.status is WorkflowExecutionStatus.FAILED


async def test_each_group_has_its_own(tmp_path: Path, foreign: Client, workspace: str) -> None:
    groups = tuple(Group(name=name, variables={"CHANNEL": name}) for name in ("linkedin", "mail"))
    step = calling("Echo", "to ${CHANNEL}")
    outcome = await ran(tmp_path, workspace).outcome(executor(foreign, step, groups=groups))
    assert outcome.state is RunState.SUCCEEDED
    assert await foreign.get_workflow_handle(f"e-{workspace}/mail/call").result() == ["to mail"]


async def test_its_own_timeout_is_temporal_s(tmp_path: Path, foreign: Client, workspace: str) -> None:
    outcome = await ran(tmp_path, workspace).outcome(executor(foreign, calling("Hold", timeout_seconds=1)))
    assert outcome.state is RunState.FAILED
    status = (await foreign.get_workflow_handle(f"e-{workspace}/call").describe()).status
    assert status is WorkflowExecutionStatus.TIMED_OUT


async def test_it_is_cancelled_with_its_run(tmp_path: Path, foreign: Client, workspace: str) -> None:
    done = ran(tmp_path, workspace)
    work = asyncio.create_task(done.outcome(executor(foreign, calling("Hold"))))

    async def started() -> bool:
        return bool([one async for one in foreign.list_workflows(f"WorkflowId = 'e-{workspace}/call'")])

    await eventually(started, what="its workflow")
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    status = (await foreign.get_workflow_handle(f"e-{workspace}/call").describe()).status
    assert status is WorkflowExecutionStatus.CANCELED
    assert done.result("call")["body"]["workflow_state"] == "cancelled"


async def test_such_a_run_may_outlive_its_worker(foreign: Client) -> None:
    prepared = await executor(foreign, calling("Echo")).prepare("acme", PAYLOAD, REFERENCE)
    assert prepared.outlives_worker
    other = executor(foreign, Step(id="only", command=("true",)))
    assert not (await other.prepare("acme", PAYLOAD, REFERENCE)).outlives_worker


@pytest.mark.parametrize("argument", ["${nothing}", ["deep", {"er": "${nothing}"}], "$", "${password}"], ids=str)
def test_it_may_name_what_it_has_and_no_secret(argument: Any) -> None:
    """Temporal keeps what a workflow is given."""
    secret = Parameter(name="password", type=ParameterType.STRING, secret=True)
    definition = PipelineDefinition(name="a", steps=(calling("Echo", argument),), parameters=(secret,))
    with pytest.raises(Invalid) as refusal:
        check(definition)
    assert refusal.value.code == "pipeline.validation.placeholder_unknown"
    assert refusal.value.field == "steps.0.workflow.args"
