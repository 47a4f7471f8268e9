"""Runs that are workflows of another team, over REST: real workflows of a real worker on a task queue of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.converter import PayloadConverter

from api.settings import Settings
from tests.api.desk import Desk, definition
from tests.foreign_workflows import QUEUE, Hold, foreign_worker
from tests.waiting import eventually

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
async def foreign(standing_api: Settings) -> AsyncIterator[Client]:
    """What the other team has: a client and a worker, without anything of Almanac's."""
    client = await Client.connect(standing_api.temporal_address, namespace=standing_api.temporal_namespace)
    async with foreign_worker(client):
        yield client


class Team:
    def __init__(self, desk: Desk, client: Client) -> None:
        self.desk = desk
        self.client = client

    async def ask(self, kind: str, **more: Any) -> dict[str, Any]:
        """The run of a Run now of a schedule that runs it."""
        changes = {key: more.pop(key) for key in list(more) if key not in ("args", "parameter_bindings", "id_prefix")}
        payload = {"workflow": kind, "task_queue": QUEUE, "id_prefix": "settle-", **more}
        created = await self.desk.created(name=kind.lower(), executor="workflow", payload=payload, **changes)
        asked = await self.desk.post(f"/schedules/{created['schedule_id']}/run-now")
        return dict(asked.json())

    async def running(self, run_id: str) -> WorkflowHandle[Any, Any]:
        """The workflow of the run, once that is recorded as running and Temporal has it."""

        async def look() -> WorkflowHandle[Any, Any] | None:
            run = (await self.desk.get(f"/runs/{run_id}")).json()
            if run["state"] != "running":
                return None
            name = f"settle-{run['execution_id']}"
            found = [one async for one in self.client.list_workflows(f"WorkflowId = '{name}'")]
            return self.client.get_workflow_handle(name) if found else None

        return await eventually(look, what=f"the workflow of {run_id}")


@pytest.fixture
async def team(desk: Desk, foreign: Client) -> Team:
    return Team(desk, foreign)


async def test_it_gets_its_arguments_and_is_told_whose_it_is(team: Team, storage_behind_api: Path) -> None:
    asked = await team.ask("Echo", args=["EUR", {"days": 3}])
    run = await team.desk.ended(asked["run_id"])
    assert (run["state"], run["target"]) == ("succeeded", f"workflow:Echo@{QUEUE}")
    handle = team.client.get_workflow_handle(f"settle-{run['execution_id']}")
    assert await handle.result() == ["EUR", {"days": 3}]
    description = await handle.describe()
    assert description.task_queue == QUEUE
    told = (await description.memo())["almanac"]
    expected = {name: run[name] for name in ("run_id", "workspace", "schedule_id", "execution_id", "run_folder")}
    assert expected.items() <= told.items()
    started = await anext(handle.fetch_history_events())
    header = started.workflow_execution_started_event_attributes.header.fields["almanac-run-identity"]
    assert PayloadConverter.default.from_payload(header) == told
    folder = storage_behind_api / team.desk.workspace / "_workflows" / "Echo" / "runs" / run["run_folder"]
    assert json.loads((folder / "result-1.json").read_bytes())["body"] == {"result": ["EUR", {"days": 3}]}
    evidence = (await team.desk.get(f"/runs/{run['run_id']}/evidence")).json()["run"]
    assert (evidence["quarantined"], evidence["metadata"]["status"]) == ([], "succeeded")
    trail = (await team.desk.get(f"/runs/{run['run_id']}/trail")).json()["items"]
    assert [row["kind"] for row in trail] == ["recorded", "claimed", "started", "finished"]


async def test_bindings_are_computed_on_the_frozen_reference_time(team: Team) -> None:
    asked = await team.ask(
        "Echo",
        args={"currency": "EUR"},
        parameter_bindings={
            "day": {"source": "keyword", "name": "TODAY"},
            "word": {"source": "literal", "value": "TODAY"},
        },
    )
    run = await team.desk.ended(asked["run_id"])
    (got,) = run["prepared"]["args"]
    assert await team.client.get_workflow_handle(f"settle-{run['execution_id']}").result() == [got]
    assert (got["currency"], got["word"], len(got["day"])) == ("EUR", "TODAY", 10)


@pytest.mark.parametrize(
    ("kind", "args", "state", "reason", "said"),
    [
        ("Fail", None, "failed", "execution_failed", "the ledger is closed"),
        ("GoOn", [2], "succeeded", None, ""),
    ],
)
async def test_its_end_is_the_run_s(
    team: Team, kind: str, args: Any, state: str, reason: str | None, said: str
) -> None:
    run = await team.desk.ended((await team.ask(kind, args=args))["run_id"])
    assert (run["state"], run["reason"]) == (state, reason)
    assert said in (run["message"] or "")


@pytest.mark.parametrize("what", ["bytes", "nan", "flood", "half a pair", "depth"])
async def test_whatever_it_returns_the_run_ends(team: Team, what: str) -> None:
    run = await team.desk.ended((await team.ask("Return", args=[what]))["run_id"])
    assert run["state"] == "succeeded"
    answer = await team.desk.get(f"/runs/{run['run_id']}/result")
    assert answer.status_code == (200 if run["message"] is None else 404), (run["message"], answer.text)


async def test_a_flood_of_words_is_cut(team: Team) -> None:
    run = await team.desk.ended((await team.ask("Return", args=["words"]))["run_id"])
    assert (run["state"], run["reason"]) == ("failed", "execution_failed")
    assert 900 < len(run["message"]) < 1100


async def test_one_that_is_reset_goes_on(team: Team) -> None:
    asked = await team.ask("Hold")
    handle = await team.running(asked["run_id"])

    async def first_task() -> int | None:
        events = [event async for event in handle.fetch_history_events()]
        done = [event.event_id for event in events if event.HasField("workflow_task_completed_event_attributes")]
        return done[0] if done else None

    await team.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=team.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id),
            reason="tried again",
            request_id=handle.id,
            workflow_task_finish_event_id=await eventually(first_task, what="its first task"),
        )
    )
    await handle.signal(Hold.let_go)
    run = await team.desk.ended(asked["run_id"])
    assert run["state"] == "succeeded"
    assert (await team.desk.get(f"/runs/{run['run_id']}/result")).json()["result"] == "let go"


async def test_one_that_takes_too_long_is_ended_by_temporal(team: Team) -> None:
    asked = await team.ask("Hold", execution_timeout_seconds=1)
    run = await team.desk.ended(asked["run_id"])
    assert (run["state"], run["reason"]) == ("failed", "execution_timeout")


async def test_who_cancels_the_run_cancels_the_workflow(team: Team) -> None:
    asked = await team.ask("Hold")
    handle = await team.running(asked["run_id"])
    cancelled = await team.desk.post(f"/runs/{asked['run_id']}/cancel")
    assert cancelled.status_code in (200, 202), cancelled.text
    run = await team.desk.ended(asked["run_id"])
    assert (run["state"], run["reason"]) == ("cancelled", "cancelled")
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED


@pytest.mark.parametrize(
    ("act", "state", "said"), [("cancel", "cancelled", "cancelled"), ("terminate", "failed", "out of disk")]
)
async def test_one_that_is_ended_from_outside(team: Team, act: str, state: str, said: str) -> None:
    asked = await team.ask("Hold")
    handle = await team.running(asked["run_id"])
    await (handle.cancel() if act == "cancel" else handle.terminate(reason="out of disk"))
    run = await team.desk.ended(asked["run_id"])
    assert run["state"] == state
    assert said in run["message"]


async def test_one_that_is_deleted_is_missing_and_its_lane_free(team: Team) -> None:
    asked = await team.ask("Hold")
    handle = await team.running(asked["run_id"])
    await team.client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=team.client.namespace, workflow_execution=WorkflowExecution(workflow_id=handle.id)
        )
    )
    run = await team.desk.ended(asked["run_id"])
    assert run["state"] == "failed" or (run["state"], run["reason"]) == ("unknown", "execution_missing")


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"latest": True}, "payload_invalid", "payload.latest"),
        ({"reference_time": "now"}, "payload_invalid", "payload.reference_time"),
        ({"workflow": ""}, "payload_invalid", "payload.workflow"),
        ({"workflow": "../etc"}, "payload_invalid", "payload.workflow"),
        ({"workflow": 3}, "payload_invalid", "payload.workflow"),
        ({"task_queue": None}, "payload_invalid", "payload.task_queue"),
        ({"task_queue": "a b"}, "payload_invalid", "payload.task_queue"),
        ({"id_prefix": "a\n"}, "payload_invalid", "payload.id_prefix"),
        ({"args": "EUR"}, "payload_invalid", "payload.args"),
        ({"parameter_bindings": []}, "payload_invalid", "payload.parameter_bindings"),
        ({"args": [1], "parameter_bindings": {"day": {}}}, "binding_invalid", "payload.parameter_bindings"),
        ({"parameter_bindings": {"day": "TODAY"}}, "binding_invalid", "payload.parameter_bindings.day"),
        (
            {"args": {"day": 1}, "parameter_bindings": {"day": {"source": "literal", "value": 1}}},
            "binding_conflict",
            "payload.parameter_bindings.day",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_payload_is_exactly_a_workflow_s(desk: Desk, change: Any, code: str, field: str) -> None:
    payload = {"workflow": "Echo", "task_queue": QUEUE} | change
    refused = await desk.post("/schedules", definition(executor="workflow", payload=payload))
    assert refused.status_code == 400, refused.text
    assert (refused.json()["code"], refused.json()["field"]) == (f"schedule.validation.{code}", field)
