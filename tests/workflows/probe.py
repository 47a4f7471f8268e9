"""Executors that do as they are told, so that a test decides when and how a run ends.

The payload `{"lane": "a", "script": "succeed"}` succeeds at once, `fail` fails, `hold` lasts until the test
releases it, `raise` breaks, `break` breaks already when prepared, `refuse:<reason>` is refused then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from domain.parameters import Reference
from domain.run import RunState
from executors.protocol import Detached, Execution, Outcome, Payload, Prepared, Refused


class ProbeExecutor:
    name = "probe"

    def __init__(self) -> None:
        self.executed: list[str] = []
        self._holds: dict[str, asyncio.Event] = {}

    async def validate(self, workspace: str, payload: Payload) -> str:
        return f"probe:{payload.get('lane', 'a')}"

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        script = str(payload.get("script", "succeed"))
        if script.startswith("refuse:"):
            raise Refused(script.partition(":")[2], "The test refuses it.")
        if script == "break":
            raise RuntimeError("as told")
        return Prepared(
            target=f"probe:{payload.get('lane', 'a')}", snapshot={"script": script}, folder_owner="probe", body=script
        )

    async def execute(self, execution: Execution, progress: Callable[[str], None]) -> Outcome:
        self.executed.append(execution.identity.run_id)
        match execution.prepared.body:
            case "fail":
                return Outcome(state=RunState.FAILED, reason="execution_failed", message="As told.")
            case "raise":
                raise RuntimeError("as told")
            case "hold":
                await self._hold(execution.identity.run_id).wait()
        return Outcome(state=RunState.SUCCEEDED)

    def release(self, run_id: str) -> None:
        self._hold(run_id).set()

    def _hold(self, run_id: str) -> asyncio.Event:
        return self._holds.setdefault(run_id, asyncio.Event())


class DetachedProbe:
    """What it launches goes on in here. The payload's script `lost` is launched and raises all the same, when the test
    lets it."""

    name = "detached_probe"

    def __init__(self) -> None:
        self.launched: list[str] = []
        self.cancelled: list[str] = []
        self.tried: list[str] = []
        self._ends: dict[str, asyncio.Future[Outcome]] = {}

    async def validate(self, workspace: str, payload: Payload) -> str:
        return f"probe:{payload.get('lane', 'a')}"

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        script = str(payload.get("script"))
        return Prepared(
            target=f"probe:{payload.get('lane', 'a')}", snapshot={"script": script}, folder_owner="probe", body=None
        )

    async def launch(self, execution: Detached) -> None:
        run_id = execution.identity.run_id
        self.tried.append(run_id)
        if execution.snapshot["script"] == "lost":
            raise RuntimeError("as told")
        self.begin(run_id)

    async def observe(self, execution: Detached) -> Outcome:
        run_id = execution.identity.run_id
        if run_id not in self._ends:
            return Outcome(state=RunState.UNKNOWN, reason="execution_missing", message="There is none.")
        return await asyncio.shield(self._ends[run_id])

    async def cancel(self, execution: Detached) -> None:
        self.cancelled.append(execution.identity.run_id)

    def begin(self, run_id: str) -> None:
        if run_id not in self._ends:
            self.launched.append(run_id)
            self._ends[run_id] = asyncio.get_running_loop().create_future()

    def end(self, run_id: str, state: RunState = RunState.SUCCEEDED, reason: str | None = None) -> None:
        self._ends[run_id].set_result(Outcome(state=state, reason=reason))
