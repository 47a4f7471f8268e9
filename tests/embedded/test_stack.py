"""The whole stack: started in order, kept running, stopped in order; with the least of a worker and of an API."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from domain.errors import Conflict, Unavailable
from embedded import supervision
from embedded.child import Child
from embedded.ports import Asked, free_port
from embedded.report import Endpoints
from embedded.stack import WORKER_GRACE_SECONDS, up
from embedded.supervision import Part
from embedded.waiting import until_ready
from tests.embedded.waiting import ended, eventually

pytestmark = pytest.mark.stack

PROGRAMS = Path(__file__).with_name("programs")


class Heard:
    """A report that remembers."""

    def __init__(self) -> None:
        self.moments: list[str] = []
        self.troubles: list[str] = []

    def was_told(self, moment: str, *, times: int) -> bool:
        return self.moments.count(moment) == times

    def note(self, text: str) -> None:
        self.moments.append("note")

    def starting(self, part: str) -> None:
        self.moments.append(f"{part} starting")

    def ready(self, part: str, address: str, seconds: float) -> None:
        self.moments.append(f"{part} ready")

    def trouble(self, part: str, text: str) -> None:
        self.troubles.append(f"{part}: {text}")

    def stopping(self, part: str) -> None:
        self.moments.append(f"{part} stopping")

    def stopped(self, part: str, seconds: float) -> None:
        self.moments.append(f"{part} stopped")

    def complete(self, endpoints: Endpoints) -> None:
        self.moments.append("up")


STARTED = ["PostgreSQL", "Schema", "Temporal", "Worker", "API"]


def free_ports() -> Asked:
    return Asked(temporal=free_port(), ui=free_port(), api=free_port())


def moments(parts: list[str], *states: str) -> list[str]:
    return [f"{part} {state}" for part in parts for state in states]


@asynccontextmanager
async def running_up(data: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Task[None]]:
    """`up`, from ready on; ended by SIGTERM to this process, as a supervisor would."""
    monkeypatch.setenv("PYTHONPATH", f"{PROGRAMS}:{Path.cwd()}")
    ready = asyncio.Event()

    async def on_ready(_endpoints: Endpoints) -> None:
        ready.set()

    task = asyncio.create_task(up(data, report=heard, asked=free_ports(), on_ready=on_ready))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
    try:
        yield task
    finally:
        if not task.done():
            os.kill(os.getpid(), signal.SIGTERM)
            await task


async def test_up_starts_in_order_and_a_signal_stops_in_the_opposite_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    async with running_up(tmp_path / "data", heard, monkeypatch):
        assert heard.moments == [*moments(STARTED, "starting", "ready"), "up"]
        heard.moments.clear()
    assert heard.moments == moments(["API", "Worker", "Temporal", "PostgreSQL"], "stopping", "stopped")
    assert heard.troubles == []


def child_running(module: str) -> int:
    """The pid of this process's child that runs the module."""
    (pid,) = [child.pid for child in psutil.Process().children() if child.cmdline()[-2:] == ["-m", module]]
    return pid


async def test_a_worker_that_is_killed_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    async with running_up(tmp_path / "data", heard, monkeypatch):
        before = child_running("worker")
        os.kill(before, signal.SIGKILL)
        await eventually(partial(heard.was_told, "Worker ready", times=2))
        assert child_running("worker") != before
    assert heard.troubles == ["Worker: ended by itself (SIGKILL); starting it again in 1 s"]


async def test_a_second_up_on_the_same_folder_is_refused_and_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_up(tmp_path / "data", Heard(), monkeypatch) as first:
        with pytest.raises(Conflict) as refusal:
            await up(tmp_path / "data", report=Heard())
        assert refusal.value.code == "embedded.already_running"
        assert not first.done()


async def test_what_was_started_is_stopped_when_a_part_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "programs" / "worker"
    worker.mkdir(parents=True)
    (worker / "__init__.py").touch()
    (worker / "__main__.py").write_text("raise SystemExit('no settings, no worker')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'programs'}:{Path.cwd()}")
    heard = Heard()
    with pytest.raises(Unavailable) as refusal:
        await up(tmp_path / "data", report=heard, asked=free_ports())
    assert refusal.value.code == "embedded.start_failed"
    assert "no settings, no worker" in refusal.value.message
    assert heard.moments[-4:] == moments(["Temporal", "PostgreSQL"], "stopping", "stopped")


class Impatient(Heard):
    """Somebody who asks for the stop at one moment, and once more at another."""

    def __init__(self, *at: str) -> None:
        super().__init__()
        self._at = at

    def starting(self, part: str) -> None:
        super().starting(part)
        self._perhaps()

    def stopping(self, part: str) -> None:
        super().stopping(part)
        self._perhaps()

    def _perhaps(self) -> None:
        if self.moments[-1] in self._at:
            os.kill(os.getpid(), signal.SIGTERM)


async def test_a_signal_during_the_start_stops_what_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{PROGRAMS}:{Path.cwd()}")
    heard = Impatient("Worker starting")
    await up(tmp_path / "data", report=heard, asked=free_ports())
    assert "API starting" not in heard.moments
    assert heard.moments[-6:] == moments(["Worker", "Temporal", "PostgreSQL"], "stopping", "stopped")


async def test_a_second_signal_does_not_wait_for_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This worker is deaf to SIGTERM: only the end of its grace or the second signal ends it."""
    worker = tmp_path / "programs" / "worker"
    worker.mkdir(parents=True)
    (worker / "__init__.py").touch()
    deaf = "import pathlib, signal; signal.signal(15, signal.SIG_IGN); pathlib.Path(__file__).with_name('deaf').touch()"
    (worker / "__main__.py").write_text(f"{deaf}; signal.pause()")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'programs'}:{Path.cwd()}")
    heard = Impatient("Worker stopping")
    running = asyncio.create_task(up(tmp_path / "data", report=heard, asked=free_ports()))
    await eventually((worker / "deaf").exists)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(WORKER_GRACE_SECONDS - 5):
        await running
    assert heard.moments[-6:] == moments(["Worker", "Temporal", "PostgreSQL"], "stopping", "stopped")


class Sleeper:
    """A server that is ready at once and sleeps."""

    def __init__(self, folder: Path) -> None:
        self._child = Child(["/bin/sleep", "600"], log=folder / "sleeper.log", cwd=folder)

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def start(self) -> None:
        await self._child.start()

    async def wait(self) -> int:
        return await self._child.wait()

    async def stop(self) -> None:
        await self._child.stop((signal.SIGTERM, 10.0))


async def test_a_part_that_dies_is_started_again_and_told(tmp_path: Path) -> None:
    heard, sleeper = Heard(), Sleeper(tmp_path)
    await sleeper.start()
    keeping = asyncio.create_task(supervision.keep(Part("Sleeper", "", sleeper), heard, first_pause=0.01))
    try:
        for rounds in (1, 2):
            pid = sleeper.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await eventually(partial(heard.was_told, "Sleeper ready", times=rounds))
            assert sleeper.pid != pid
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})
        await sleeper.stop()
    assert heard.troubles == [
        "Sleeper: ended by itself (SIGKILL); starting it again in 0.01 s",
        "Sleeper: ended by itself (SIGKILL); starting it again in 0.02 s",
    ]


async def test_a_part_asked_to_stop_has_its_whole_group_ended(tmp_path: Path) -> None:
    """A program may leave processes of its own behind when it ends."""
    command = "sleep 600 & echo $!; exec sleep 600"
    child = Child(["/bin/sh", "-c", command], log=tmp_path / "log", cwd=tmp_path)
    await child.start()
    await eventually(lambda: bool((tmp_path / "log").read_text().strip()))
    left = int((tmp_path / "log").read_text())
    await child.stop((signal.SIGTERM, 10.0))
    await eventually(lambda: ended(left))


async def test_a_part_that_never_gets_ready_is_refused_with_its_last_words(tmp_path: Path) -> None:
    child = Child(["/bin/sh", "-c", "echo thinking; exec sleep 600"], log=tmp_path / "log", cwd=tmp_path)
    await child.start()

    async def never() -> bool:
        return False

    try:
        await eventually(lambda: "thinking" in (tmp_path / "log").read_text())
        with pytest.raises(Unavailable, match="not ready within 0 seconds: thinking"):
            await until_ready("the thinker", child, never, 0.1)
    finally:
        await child.stop()
