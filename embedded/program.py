"""Almanac's own programs, the worker and the API, as children of `almanac up`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from domain.messages import TASK_QUEUE
from embedded.child import Child
from embedded.waiting import until_ready

READY_PATH = "/readyz"
"""Answers 200 once the API can serve requests."""

_START_SECONDS = 60.0


class Program:
    """`python -m MODULE`: ready when `ready(since)` holds for its start, ended by SIGTERM and `grace` seconds."""

    def __init__(
        self,
        module: str,
        *,
        settings: Mapping[str, str],
        logs: Path,
        ready: Callable[[datetime], Awaitable[bool]],
        grace: float,
    ) -> None:
        # -P keeps the current folder off the import path: a user's own worker.py must not be taken for ours.
        argv = [sys.executable, "-P", "-m", module]
        self._module = module
        self._child = Child(argv, log=logs / f"{module}.log", cwd=Path.cwd(), env=_environment(settings))
        self._ready = ready
        self._grace = grace

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def start(self) -> None:
        """Start it and return once it is ready. Raises Unavailable `embedded.start_failed`."""
        since = datetime.now(UTC)
        await self._child.start()
        await until_ready(f"the {self._module}", self._child, lambda: self._ready(since), _START_SECONDS)

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        return await self._child.wait()

    async def stop(self) -> None:
        await self._child.stop((signal.SIGTERM, self._grace))

    def kill(self) -> None:
        """End it at once, for someone who doesn't want to wait for the grace."""
        self._child.kill()


def worker_polls(address: str, namespace: str) -> Callable[[datetime], Awaitable[bool]]:
    """Whether Temporal has seen a worker poll since an instant. One that died is listed for minutes, so only a
    later poll counts."""

    async def polls(since: datetime) -> bool:
        request = DescribeTaskQueueRequest(
            namespace=namespace,
            task_queue=TaskQueue(name=TASK_QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        try:
            client = await Client.connect(address, namespace=namespace)
            answer = await client.workflow_service.describe_task_queue(request)
        except (RPCError, RuntimeError):
            return False
        return any(poller.last_access_time.ToDatetime(UTC) >= since for poller in answer.pollers)

    return polls


def api_answers(port: int) -> Callable[[datetime], Awaitable[bool]]:
    """Whether the API says that it is ready."""

    async def answers(_since: datetime) -> bool:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(5):
                return await _status(port, READY_PATH) == b"200"
        return False

    return answers


async def _status(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        _version, _, rest = (await reader.readline()).partition(b" ")
        return rest[:3]
    finally:
        writer.close()


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with our settings, and without a user's own Temporal ones, which lead elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    return kept | dict(settings) | {"PYTHONUNBUFFERED": "1"}
