"""What people, services and a careless network do to the schedules: one function for each, by the name in the plan.

An act is tried once; a request that gets no answer may have done something or nothing, as in life. What was answered
is kept: it is a promise that the checker holds Almanac to.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest, SignalWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError

from tests.chaos.evidence import Ask
from tests.chaos.plan import PATTERNS, Act, Plan, Planned

NAMESPACE = "almanac"
CONNECTION = (httpx.TransportError, RPCError, RuntimeError)
"""What a call raises that nobody answered."""

OPEN = ("waiting", "queued", "starting", "running")


@dataclass
class Town:
    plan: Plan
    http: httpx.AsyncClient
    client: Client
    ids: dict[int, str] = field(default_factory=dict)
    """The schedules that were created, by their numbers in the plan."""
    hooks: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Paths and secrets."""
    asks: list[Ask] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    """How often each act was answered as it was meant."""

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response | None:
        """None when nobody answered."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with suppress(*CONNECTION):
            return await self.http.request(method, path, json=body, headers=named)
        return None

    async def certainly(self, method: str, path: str, body: Any = None, within: float = 120.0) -> Any:
        """The answer of a call that is repeated until it gets one that is not about an outage."""
        until = time.monotonic() + within
        while True:
            answer = await self.call(method, path, body)
            if answer is not None and answer.status_code < 500 and answer.status_code != 429:
                return answer.json() if answer.content else None
            if time.monotonic() > until:
                raise TimeoutError(f"{method} {path}: {answer.text if answer is not None else 'no answer'}")
            await asyncio.sleep(0.5)

    def schedule(self, number: int) -> Planned:
        return self.plan.schedules[number]

    def path(self, number: int) -> str:
        return f"{root(self.schedule(number).workspace)}/schedules/{self.ids[number]}"

    def promised(self, kind: str, answer: httpx.Response | None, key: str) -> None:
        if answer is not None and answer.status_code == 202:
            self.asks.append(Ask(time.time(), kind, answer.json()["run_id"], key))


def root(workspace: str) -> str:
    return f"/api/v1/workspaces/{workspace}"


async def perform(town: Town, act: Act) -> None:
    """Does it, unless what it is about is not there (yet, or any more)."""
    if act.number not in town.ids and act.what not in ("create", "activate", "deactivate"):
        return
    answered = await DO[act.what](town, act)
    if answered:
        town.done[act.what] = town.done.get(act.what, 0) + 1


async def create(town: Town, act: Act) -> bool:
    """The next spare schedule of the plan."""
    spare = next((each.number for each in town.plan.schedules if each.spare and each.number not in town.ids), None)
    return spare is not None and await add(town, town.schedule(spare))


async def add(town: Town, planned: Planned) -> bool:
    parents = [town.ids[number] for number in planned.parents if number in town.ids]
    if len(parents) < len(planned.parents):
        return False
    body = planned.body | ({"after_schedule_ids": parents} if parents else {})
    key = f"create-{town.plan.seed}-{planned.number}"
    answer = await town.call("POST", f"{root(planned.workspace)}/schedules", body, Idempotency_Key=key)
    if answer is None or answer.status_code != 201:
        return False
    town.ids[planned.number] = answer.json()["schedule_id"]
    return True


async def run_now(town: Town, act: Act) -> bool:
    """The same request three times at once."""
    key = f"now-{act.at}"
    call = (town.call("POST", f"{town.path(act.number)}/run-now", Idempotency_Key=key) for _ in range(3))
    answers = await asyncio.gather(*call)
    for answer in answers:
        town.promised("run_now", answer, key)
    return any(answer is not None and answer.status_code == 202 for answer in answers)


async def run_now_signal(town: Town, act: Act) -> bool:
    """The same signal twice."""
    schedule, key = town.ids[act.number], f"signal-{act.at}"
    handle = town.client.get_workflow_handle(f"schedule/{town.schedule(act.number).workspace}/{schedule}")
    sent = False
    for _ in range(2):
        with suppress(*CONNECTION):
            await handle.signal("run_now_signal", {"key": key, "by": "a service"})
            sent = True
    if sent:
        run_id = f"{schedule}-now-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        town.asks.append(Ask(time.time(), "run_now_signal", run_id, key))
    return sent


async def hook(town: Town, act: Act) -> bool:
    """The same delivery twice."""
    if act.number not in town.hooks:
        answer = await town.call("POST", f"{town.path(act.number)}/hooks")
        if answer is None or answer.status_code != 201:
            return False
        town.hooks[act.number] = (answer.json()["path"], answer.json()["secret"])
    path, secret = town.hooks[act.number]
    stamp, body = str(int(time.time())), json.dumps({"act": act.at}).encode()
    signed = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    headers = {"Almanac-Timestamp": stamp, "Almanac-Signature": f"v1={signed}", "Content-Type": "application/json"}
    answered = False
    for _ in range(2):
        with suppress(*CONNECTION):
            answer = await town.http.post(path, content=body, headers=headers)
            town.promised("hook", answer, f"{stamp}-{act.at}")
            answered = answered or answer.status_code == 202
    return answered


async def manual(town: Town, act: Act) -> bool:
    planned, key = town.schedule(act.number), f"manual-{act.at}"
    path = f"{root(planned.workspace)}/pipelines/{planned.pipeline}/runs"
    answers = await asyncio.gather(*(town.call("POST", path, Idempotency_Key=key) for _ in range(2)))
    for answer in answers:
        town.promised("manual", answer, key)
    return any(answer is not None and answer.status_code == 202 for answer in answers)


async def echo(town: Town, act: Act) -> bool:
    """The network delivers once more the signal that a schedule or its lane has had last."""
    planned = town.schedule(act.number)
    lane = f"lane/{planned.workspace}/pipeline:{planned.pipeline}"
    workflow = f"schedule/{planned.workspace}/{town.ids[act.number]}" if act.chance < 0.6 else lane
    execution = WorkflowExecution(workflow_id=workflow)
    asked = GetWorkflowExecutionHistoryReverseRequest(namespace=NAMESPACE, execution=execution, maximum_page_size=60)
    with suppress(*CONNECTION):
        history = await town.client.workflow_service.get_workflow_execution_history_reverse(asked)
        for event in history.history.events:
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
                had = event.workflow_execution_signaled_event_attributes
                again = SignalWorkflowExecutionRequest(
                    namespace=NAMESPACE,
                    workflow_execution=execution,
                    signal_name=had.signal_name,
                    input=had.input,
                    header=had.header,
                )
                await town.client.workflow_service.signal_workflow_execution(again)
                return True
    return False


async def edit_words(town: Town, act: Act) -> bool:
    return await _edit(town, act.number, {"notes": f"edited at {act.at}"})


async def edit_policy(town: Town, act: Act) -> bool:
    policies = ("skip", "queue_latest", "retry", "coalesce")
    return await _edit(town, act.number, {"collision_policy": policies[int(act.chance * 4)]})


async def edit_timing(town: Town, act: Act) -> bool:
    if "cron" not in town.schedule(act.number).body:
        return False
    return await _edit(town, act.number, {"cron": PATTERNS[int(act.chance * len(PATTERNS))]})


async def edit_target(town: Town, act: Act) -> bool:
    """Onto the lane of another pipeline."""
    own = town.schedule(act.number).workspace
    others = [pipeline.name for workspace, pipeline in town.plan.pipelines if workspace == own]
    other = others[int(act.chance * len(others))]
    return await _edit(town, act.number, {"payload": {"pipeline": other, "version": "current"}})


async def _edit(town: Town, number: int, change: Mapping[str, Any]) -> bool:
    read = await town.call("GET", town.path(number))
    if read is None or read.status_code != 200:
        return False
    view = read.json()
    body = view["definition"] | change | {"revision": view["revision"]}
    answer = await town.call("PUT", town.path(number), body)
    return answer is not None and answer.status_code == 200


def _post(suffix: str) -> Callable[[Town, Act], Awaitable[bool]]:
    async def post(town: Town, act: Act) -> bool:
        answer = await town.call("POST", f"{town.path(act.number)}/{suffix}")
        return answer is not None and answer.status_code == 200

    return post


async def cancel(town: Town, act: Act) -> bool:
    """A run of the schedule that has not ended; where there is none, of any other."""
    path = f"{root(town.schedule(act.number).workspace)}/runs"
    query = "&".join(f"state={state}" for state in OPEN)
    found = await town.call("GET", f"{path}?{query}")
    if found is None or found.status_code != 200 or not found.json()["items"]:
        return False
    items = found.json()["items"]
    own = [item for item in items if item["schedule_id"] == town.ids[act.number]]
    chosen = own[0] if own else items[int(act.chance * len(items))]
    answer = await town.call("POST", f"{path}/{chosen['run_id']}/cancel")
    return answer is not None and answer.status_code == 202


async def delete(town: Town, act: Act) -> bool:
    """Refused where others wait for it."""
    answer = await town.call("DELETE", town.path(act.number))
    return answer is not None and answer.status_code == 204


def _switch(*, active: bool) -> Callable[[Town, Act], Awaitable[bool]]:
    async def switch(town: Town, act: Act) -> bool:
        await town.certainly("PUT", root("annex"), {"active": active})
        return True

    return switch


DO: dict[str, Callable[[Town, Act], Awaitable[bool]]] = {
    "run_now": run_now,
    "run_now_signal": run_now_signal,
    "hook": hook,
    "manual": manual,
    "echo": echo,
    "edit_words": edit_words,
    "edit_policy": edit_policy,
    "edit_timing": edit_timing,
    "edit_target": edit_target,
    "pause": _post("pause"),
    "resume": _post("resume"),
    "cancel": cancel,
    "replan": _post("replan"),
    "create": create,
    "delete": delete,
    "deactivate": _switch(active=False),
    "activate": _switch(active=True),
}
