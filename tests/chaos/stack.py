"""The real parts, each kept running, and each at hand to be killed or halted.

The parts are those of `almanac up`, with more than one worker. They are kept by a keeper of their own, because the
product's waits longer and longer for a part that ends again and again, as it should.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from temporalio.client import Client

from domain.errors import AlmanacError
from embedded.folder import DataFolder
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.program import Program, api_answers, worker_polls
from embedded.stack import NAMESPACE
from embedded.supervision import Server
from embedded.temporal_server import TemporalServer
from readmodel import migrate

ROOT = Path(__file__).parents[2]
RESTART_SECONDS = 0.5


@dataclass
class Part:
    name: str
    server: Server
    kills: int = 0
    halts: list[tuple[float, float]] = field(default_factory=list)
    """From when until when it was halted, as seconds since the epoch."""

    async def keep(self) -> None:
        """Starts it again whenever it ends, for ever."""
        while True:
            await self.server.wait()
            await asyncio.sleep(RESTART_SECONDS)
            await self.server.stop()
            with suppress(AlmanacError):
                await self.server.start()

    async def killed(self) -> bool:
        """Whether there was something to kill."""
        done = _signal(self._processes()[:1], signal.SIGKILL)
        self.kills += done
        return done

    async def halt(self, seconds: float) -> None:
        """It stands still for so long, unless it is killed meanwhile."""
        halted = self._processes()
        began = time.time()
        _signal(halted, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            _signal(halted, signal.SIGCONT)
            self.halts.append((began, time.time()))

    def _processes(self) -> list[psutil.Process]:
        """What stands still together: PostgreSQL is many processes, and a worker's guardians are not the worker."""
        if self.server.pid is None:
            return []
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(self.server.pid)
            if main.status() == psutil.STATUS_ZOMBIE:
                return []
            return [main, *(main.children(recursive=True) if isinstance(self.server, PostgresServer) else [])]
        return []


def _signal(processes: list[psutil.Process], what: signal.Signals) -> bool:
    done = False
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(what)
            done = True
    return done


@dataclass(frozen=True)
class Stack:
    folder: Path
    data: DataFolder
    api_port: int
    postgres: PostgresServer
    temporal: TemporalServer
    parts: dict[str, Part]

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def workers(self) -> list[str]:
        return [name for name in self.parts if name.startswith("worker")]

    async def client(self) -> Client:
        return await Client.connect(self.temporal.address, namespace=NAMESPACE)

    def http(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.data.token()}"}
        base = f"http://127.0.0.1:{self.api_port}"
        return httpx.AsyncClient(base_url=base, headers=headers, timeout=15, trust_env=False)


@asynccontextmanager
async def stack(folder: Path, workers: int, worker_module: str, further: Mapping[str, str]) -> AsyncIterator[Stack]:
    """All parts, started and kept. `worker_module` is what a worker process runs, `further` are settings."""
    data = DataFolder(folder / "data")
    (folder / "ledger").touch()
    async with AsyncExitStack() as left:
        left.enter_context(data.held())
        ports = {"temporal": free_port(), "api": free_port()}
        postgres = PostgresServer(data.root)
        temporal = TemporalServer(data.root, port=ports["temporal"], ui_port=None, namespace=NAMESPACE)
        for server in (postgres, temporal):
            left.push_async_callback(server.stop)
            await server.start()
        await migrate.upgrade(postgres.url)
        settings = _settings(data, postgres, temporal, ports["api"]) | dict(further)
        parts = {"PostgreSQL": Part("PostgreSQL", postgres), "Temporal": Part("Temporal", temporal)}
        polls = worker_polls(temporal.address, NAMESPACE)
        for number in range(1, workers + 1):
            name = f"worker-{number}"
            own = settings | {"ALMANAC_WORKER_NAME": name}
            program = Program(worker_module, settings=own, logs=data.logs, ready=polls, grace=15.0)
            parts[name] = Part(name, program)
        answers = api_answers(ports["api"])
        parts["api"] = Part("api", Program("api", settings=settings, logs=data.logs, ready=answers, grace=5.0))
        for part in list(parts.values())[2:]:
            left.push_async_callback(part.server.stop)
            await part.server.start()
        keepers = [asyncio.create_task(part.keep(), name=part.name) for part in parts.values()]
        left.push_async_callback(_cancelled, keepers)
        yield Stack(folder, data, ports["api"], postgres, temporal, parts)


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _settings(data: DataFolder, postgres: PostgresServer, temporal: TemporalServer, api_port: int) -> dict[str, str]:
    return {
        "PYTHONPATH": str(ROOT),
        "ALMANAC_DATABASE_URL": postgres.url,
        "ALMANAC_TEMPORAL_ADDRESS": temporal.address,
        "ALMANAC_TEMPORAL_NAMESPACE": NAMESPACE,
        "ALMANAC_STORAGE": str(data.storage),
        "ALMANAC_TOKEN_FILE": str(data.token_file),
        "ALMANAC_SECRET_KEY_FILE": str(data.key_file),
        "ALMANAC_API_HOST": "127.0.0.1",
        "ALMANAC_API_PORT": str(api_port),
        "ALMANAC_MIN_INTERVAL_SECONDS": "60",
        "ALMANAC_MAX_CONCURRENT_RUNS": "8",
        "ALMANAC_RECORD_TIMEOUT_SECONDS": "3",
        "ALMANAC_DRAIN_SECONDS": "3",
    }
