"""The one-machine Almanac: started in order, kept running, stopped in the opposite order."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from domain.messages import TASK_QUEUE
from embedded import supervision
from embedded.folder import DataFolder, Ports
from embedded.ports import Asked, choose
from embedded.postgres import PostgresServer
from embedded.program import Program, api_answers, worker_polls
from embedded.report import Endpoints, Report, near
from embedded.supervision import Part
from embedded.temporal_server import TemporalServer
from readmodel import migrate

NAMESPACE = "almanac"

WORKER_GRACE_SECONDS = 30.0
"""From SIGTERM to SIGKILL: 5 s for launches to reach running, 20 s for executions to finish, and some to spare."""

API_GRACE_SECONDS = 10.0

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stack:
    """All parts on one data folder, which the caller holds (`DataFolder.held`)."""

    def __init__(self, folder: DataFolder, ports: Ports, report: Report) -> None:
        self._report = report
        self.endpoints = Endpoints(
            ui=f"http://127.0.0.1:{ports.ui}/namespaces/{NAMESPACE}",
            api=f"http://127.0.0.1:{ports.api}",
            token_file=str(folder.token_file),
            data=str(folder.root),
        )
        self.postgres = PostgresServer(folder.root)
        self.temporal = TemporalServer(folder.root, port=ports.temporal, ui_port=ports.ui, namespace=NAMESPACE)
        settings = self._settings(folder, ports)
        polls = worker_polls(self.temporal.address, NAMESPACE)
        answers = api_answers(ports.api)
        self.worker = Program("worker", settings=settings, logs=folder.logs, ready=polls, grace=WORKER_GRACE_SECONDS)
        self.api = Program("api", settings=settings, logs=folder.logs, ready=answers, grace=API_GRACE_SECONDS)
        self._database = Part("PostgreSQL", near(self.postgres.socket_folder), self.postgres)
        self._rest = (
            Part("Temporal", self.temporal.address, self.temporal),
            Part("Worker", f"task queue {TASK_QUEUE}", self.worker),
            Part("API", self.endpoints.api, self.api),
        )

    async def start(self) -> None:
        """Return once every part is ready. Raises the refusal of the first part that isn't."""
        await supervision.start(self._database, self._report)
        await self._migrate()
        for part in self._rest:
            await supervision.start(part, self._report)
        self._report.complete(self.endpoints)

    async def keep(self) -> None:
        """Start again what ends by itself, for ever."""
        await asyncio.gather(*(supervision.keep(part, self._report) for part in (self._database, *self._rest)))

    async def stop(self) -> None:
        """API, worker (which drains), Temporal, PostgreSQL; also what a broken-off start left."""
        for part in reversed((self._database, *self._rest)):
            await supervision.stop(part, self._report)

    def hurry(self) -> None:
        """Cut the grace of the programs short; the servers still end in order."""
        self.api.kill()
        self.worker.kill()

    async def _migrate(self) -> None:
        began = time.monotonic()
        self._report.starting("Schema")
        await migrate.upgrade(self.postgres.url)
        self._report.ready("Schema", "", time.monotonic() - began)

    def _settings(self, folder: DataFolder, ports: Ports) -> dict[str, str]:
        return {
            "ALMANAC_DATABASE_URL": self.postgres.url,
            "ALMANAC_TEMPORAL_ADDRESS": self.temporal.address,
            "ALMANAC_TEMPORAL_NAMESPACE": NAMESPACE,
            "ALMANAC_STORAGE": str(folder.storage),
            "ALMANAC_TOKEN_FILE": str(folder.token_file),
            "ALMANAC_SECRET_KEY_FILE": str(folder.key_file),
            "ALMANAC_API_HOST": "127.0.0.1",
            "ALMANAC_API_PORT": str(ports.api),
        }


async def up(
    data_dir: Path,
    *,
    report: Report,
    asked: Asked = Asked(),  # noqa: B008  frozen
    on_ready: Callable[[Endpoints], Awaitable[None]] | None = None,
) -> None:
    """Run Almanac on this machine until SIGINT, SIGTERM or SIGHUP; a second signal cuts the worker's grace.

    `on_ready` runs once beside the running stack. Raises the refusals of `DataFolder.held`, `ports.choose`,
    `Stack.start` and `on_ready`, after what had been started has been stopped.
    """
    folder = DataFolder(data_dir)
    with folder.held():
        ports, moved = choose(asked, folder.saved_ports())
        for sentence in moved:
            report.note(sentence)
        folder.save_ports(ports)
        stack = Stack(folder, ports, report)
        with _asked_to_stop(hurry=stack.hurry) as stopping:
            try:
                await _until(stopping, _serve(stack, on_ready))
            finally:
                await stack.stop()


async def _serve(stack: Stack, on_ready: Callable[[Endpoints], Awaitable[None]] | None) -> None:
    await stack.start()
    keeping = asyncio.create_task(stack.keep())
    try:
        if on_ready is not None:
            await on_ready(stack.endpoints)
        await keeping
    finally:
        keeping.cancel()


async def _until(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it ends, and then raise what it raised, or until the event."""
    working, waiting = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (working, waiting):
        task.cancel()
    await asyncio.wait({working, waiting})
    if not working.cancelled():
        working.result()


@contextmanager
def _asked_to_stop(*, hurry: Callable[[], None]) -> Iterator[asyncio.Event]:
    """An event that the first signal sets; each further one calls `hurry`."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def handle() -> None:
        if stopping.is_set():
            hurry()
        stopping.set()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, handle)
    try:
        yield stopping
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
