"""Almanac as people start it: `almanac up` as a process of its own, with its own data folder and ports."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from embedded.child import Child
from embedded.folder import DataFolder
from embedded.ports import free_port
from embedded.stack import NAMESPACE
from tests.waiting import eventually

PARTS = {"worker": "worker", "api": "api", "PostgreSQL": "postgres", "Temporal": "start-dev"}
"""What is in the command line of each part."""


class Machine:
    def __init__(self, folder: Path, **settings: str) -> None:
        self.data = DataFolder(folder / "data")
        self._folder = folder
        self._ports = {"temporal": free_port(), "ui": free_port(), "api": free_port()}
        self._settings = {f"ALMANAC_{name.upper()}": value for name, value in settings.items()}
        self._starts = 0
        self._up: Child | None = None

    @property
    def up(self) -> Child:
        assert self._up is not None, "not started"
        return self._up

    async def start(self) -> None:
        """Returns once everything is ready."""
        self._starts += 1
        root = Path(__file__).parents[2]
        ports = [word for name, port in self._ports.items() for word in (f"--{name}-port", str(port))]
        argv = [sys.executable, "-P", "-m", "cli", "up", "--json", "--data", str(self.data.root), *ports]
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1", **self._settings}
        self._up = Child(argv, log=self._folder / f"up-{self._starts}.log", cwd=self._folder, env=environment)
        await self._up.start()
        await self.told("ready", within=90)

    async def interrupt(self) -> None:
        """Ctrl-C; returns at once."""
        self.up.send(signal.SIGINT)

    async def kill(self) -> None:
        """SIGKILL to `almanac up` itself."""
        self.up.send(signal.SIGKILL)
        await self.up.wait()

    async def end(self) -> None:
        """Stopped, and killed where that takes too long. Harmless where nothing was started."""
        if self._up is not None:
            self._up.send(signal.SIGCONT)
            await self._up.stop((signal.SIGINT, 45.0))

    def events(self) -> list[dict[str, Any]]:
        """What it has said since its latest start."""
        lines = self.up.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def moments(self, state: str) -> list[str]:
        """The parts that have reached this state, in order."""
        return [event["part"] for event in self.events() if event["event"] == "part" and event["state"] == state]

    async def told(self, event: str, within: float = 30.0) -> None:
        async def look() -> bool:
            assert self.up.running, self.up.log.read_text()
            return any(said["event"] == event for said in self.events())

        await eventually(look, within=within, what=f"'{event}'")

    async def ready_again(self, part: str, times: int = 2) -> None:
        async def look() -> bool:
            return self.moments("ready").count(part) >= times

        await eventually(look, what=f"{part} ready for the {times}. time")

    def pid_of(self, part: str) -> int:
        assert self.up.pid is not None
        children = psutil.Process(self.up.pid).children()
        (pid,) = [child.pid for child in children if any(word.endswith(PARTS[part]) for word in child.cmdline())]
        return pid

    @asynccontextmanager
    async def left_alone(self) -> AsyncIterator[None]:
        """`almanac up` is halted, so what is killed stays dead for so long."""
        self.up.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.up.send(signal.SIGCONT)

    async def temporal(self) -> Client:
        address = f"127.0.0.1:{self._ports['temporal']}"
        return await Client.connect(address, namespace=NAMESPACE, data_converter=pydantic_data_converter)

    @asynccontextmanager
    async def api(self) -> AsyncIterator[httpx.AsyncClient]:
        headers = {"Authorization": f"Bearer {self.data.token()}"}
        url = f"http://127.0.0.1:{self._ports['api']}"
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False) as client:
            yield client


@asynccontextmanager
async def machine(folder: Path, **settings: str) -> AsyncIterator[Machine]:
    """Started, and gone afterwards however the test left it."""
    built = Machine(folder, **settings)
    try:
        await built.start()
        yield built
    finally:
        await built.end()
