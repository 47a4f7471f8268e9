"""`python -m tests.e2e.dying_worker BOUNDARY`: takes executions as the worker does, and kills itself with SIGKILL at
the boundary, in the middle of the product's own code. `healthy` takes them and lives."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from domain.parameters import Reference
from domain.run import RunState
from evidence import endings, folders
from executors.protocol import Execution, Outcome, Payload, Prepared
from executors.registry import Registry
from executors.started_workflows import Workflows
from executors.workflow import WorkflowExecutor
from readmodel.claims import Claims
from readmodel.database import Database
from worker import wiring
from worker.settings import WorkerSettings

NAP_SECONDS = 3.0
ALLOCATE = folders.allocate


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Probe:
    """Its payload's script: `succeed`, `nap` before that, `hold` until stopped."""

    name = "probe"

    def __init__(self, boundary: str) -> None:
        self._boundary = boundary

    async def validate(self, workspace: str, payload: Payload) -> str:
        return "probe:a"

    async def prepare(self, workspace: str, payload: Payload, reference: Reference) -> Prepared:
        if self._boundary == "preparing":
            die()
        script = str(payload["script"])
        return Prepared(target="probe:a", snapshot={}, folder_owner="probe", body=script)

    async def execute(self, execution: Execution, progress: Callable[[str], None]) -> Outcome:
        (execution.folder / "began").touch()
        match execution.prepared.body:
            case "hold":
                await asyncio.Event().wait()
            case "nap":
                await asyncio.sleep(NAP_SECONDS)
        if self._boundary == "executing":
            die()
        return Outcome(state=RunState.SUCCEEDED)


def dying_after(done: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def last(*arguments: Any, **named: Any) -> None:
        await done(*arguments, **named)
        die()

    return last


def bind_and_die(*arguments: Any) -> None:
    ALLOCATE(*arguments)
    die()


def arrange(boundary: str) -> None:
    replaced: dict[str, tuple[Any, str, Callable[..., Any]]] = {
        "bound": (folders, "allocate", bind_and_die),
        "claimed": (Claims, "claim", dying_after(Claims.claim)),
        "ended": (endings, "write", lambda *_: die()),
        "written": (Claims, "finish", lambda *_, **__: die()),
        "recorded": (Claims, "finish", dying_after(Claims.finish)),
    }
    if boundary in replaced:
        owner, name, deadly = replaced[boundary]
        setattr(owner, name, deadly)


async def serve(boundary: str) -> None:
    arrange(boundary)
    settings = WorkerSettings()
    client = await wiring.connect(settings)
    probe, elsewhere = Probe(boundary), WorkflowExecutor(Workflows(client))
    executors = Registry({probe.name: probe, elsewhere.name: elsewhere}, {})
    _, slots = wiring.workers(client, Database(settings.database_url), executors, settings)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with slots:
        await told.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
