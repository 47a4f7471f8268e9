"""Keeps a part running: what ends unasked is started again, each time with a line that says so."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from domain.errors import AlmanacError
from embedded.report import Report

_STEADY_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 30.0


class Server(Protocol):
    """Something that runs as a process. `start` returns when it is ready; `wait` gives its exit code."""

    @property
    def pid(self) -> int | None: ...
    async def start(self) -> None: ...
    async def wait(self) -> int: ...
    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A server, its name for people, and where it listens."""

    name: str
    address: str
    server: Server


async def start(part: Part, report: Report) -> None:
    """Start the part and tell. Raises what the server's start raises."""
    began = time.monotonic()
    report.starting(part.name)
    await part.server.start()
    report.ready(part.name, part.address, time.monotonic() - began)


async def stop(part: Part, report: Report) -> None:
    """End the part and tell; silent for one that was never started."""
    if part.server.pid is None:
        return
    began = time.monotonic()
    report.stopping(part.name)
    await part.server.stop()
    report.stopped(part.name, time.monotonic() - began)


async def keep(part: Part, report: Report, *, first_pause: float = 1.0) -> None:
    """Start the part again whenever it ends, for ever. The pause doubles with each end up to 30 seconds, and is
    `first_pause` seconds again after a minute of steady work."""
    pauses = _pauses(first_pause)
    while True:
        began = time.monotonic()
        code = await part.server.wait()
        if time.monotonic() - began > _STEADY_SECONDS:
            pauses = _pauses(first_pause)
        await _start_again(part, report, f"ended by itself ({_exit(code)})", pauses)


async def _start_again(part: Part, report: Report, why: str, pauses: Iterator[float]) -> None:
    while True:
        pause = next(pauses)
        report.trouble(part.name, f"{why}; starting it again in {pause:g} s")
        await asyncio.sleep(pause)
        # What is left of it, such as a start that never got ready, must not stand in the way.
        await part.server.stop()
        try:
            await start(part, report)
        except AlmanacError as error:
            why = error.message
        else:
            return


def _pauses(first: float) -> Iterator[float]:
    pause = first
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
