"""One program, run to its end: as its own session, under a guardian that ends all of it, with its output in files.

The worker's event loop reads none of the output, so neither a flood of it nor its size touches the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from executors.guardian import Order

CODE = Path(__file__).parents[1]

KEEP_BYTES = 4 * 1024 * 1024
"""Of each stream the first and the last so many bytes are kept."""

GRACE_SECONDS = 5.0
"""What a program has between SIGTERM and SIGKILL."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """All of it: the program inherits nothing."""
    directory: Path
    stdout: Path
    stderr: Path
    """Both files exist."""
    timeout_seconds: float | None = None
    secrets: tuple[str, ...] = ()
    """What neither file may have in it."""


@dataclass(frozen=True, slots=True)
class Captured:
    """Bytes the program wrote, and how many of them are not in the file."""

    size: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    started_at: datetime
    ended_at: datetime
    seconds: float
    exit_code: int | None
    """None when a signal ended it, or when nobody saw its end; 126 or 127 when it could not be executed."""
    signal: int | None = None
    stopped: Literal["timeout", "cancelled"] | None = None
    problem: str | None = None
    """Why there is no ordinary end, in words."""
    stdout: Captured = Captured()
    stderr: Captured = Captured()

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.stopped is None

    @property
    def how(self) -> str:
        """In words that follow the program's name: `ended with exit code 3`."""
        if self.problem is not None:
            return self.problem
        if self.signal is not None:
            return f"was ended by signal {self.signal} ({signal.strsignal(self.signal)})"
        return f"ended with exit code {self.exit_code}"


class Guardians:
    """Where programs get their guardians from: one process, started with the first program and again should it
    be gone, that forks them. It ends when this object or the worker does; the guardians end with their programs."""

    def __init__(self) -> None:
        self._source: socket.socket | None = None
        self._turn = asyncio.Lock()

    async def order(self, order: Order) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The link with a new guardian. Raises OSError, and ValueError for what no program can be given."""
        message = order.pack()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._send(message, theirs)
            return await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            raise

    async def _send(self, message: bytes, link: socket.socket) -> None:
        async with self._turn:
            source = self._source or await self._start()
            try:
                await asyncio.to_thread(_send_with, source, message, link)
            except OSError:
                source.close()
                await asyncio.to_thread(_send_with, await self._start(), message, link)

    async def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            starting = await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", "-s", "-P", "-m", "executors.guardian"),
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": str(CODE), "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        # It forks and goes, so that nobody has to await the one that stays.
        await starting.wait()
        self._source = ours
        weakref.finalize(self, ours.close)
        return ours


def _send_with(source: socket.socket, message: bytes, link: socket.socket) -> None:
    sent = socket.send_fds(source, [message], [link.fileno()])
    source.sendall(message[sent:])


class Program:
    """One run of a command. `ended` is there as soon as nothing of it is left, also when `run` was cancelled."""

    def __init__(self, command: Command, guardians: Guardians) -> None:
        self.ended: Ended | None = None
        self._command = command
        self._guardians = guardians
        self._stop = asyncio.Event()

    async def run(self) -> Ended:
        """Returns when the program and everything that it started is gone; never raises for what a program does.
        Cancelling stops it, waits for its end as well, and only then raises CancelledError."""
        supervision = asyncio.create_task(self._supervise())
        cancelled = False
        while not supervision.done():
            try:
                await asyncio.wait({supervision})
            except asyncio.CancelledError:
                cancelled = True
                self._stop.set()
        self.ended = supervision.result()
        if cancelled:
            raise asyncio.CancelledError
        return self.ended

    async def _supervise(self) -> Ended:
        started_at, clock = datetime.now(UTC), time.monotonic()
        try:
            reader, writer = await self._guardians.order(self._order())
        except (OSError, ValueError) as error:
            now = datetime.now(UTC)
            return Ended(started_at, now, 0.0, NOT_EXECUTABLE, problem=f"could not be started: {error}")
        try:
            stopped, report = await self._await_report(reader, writer)
        finally:
            # The end of the link: the guardian stops the program, whatever becomes of us.
            writer.close()
        seconds = time.monotonic() - clock
        return _read_report(report, Ended(started_at, datetime.now(UTC), seconds, None, stopped=stopped))

    def _order(self) -> Order:
        command = self._command
        return Order(
            argv=command.argv,
            environment=tuple(f"{name}={value}" for name, value in command.environment.items()),
            directory=str(command.directory),
            stdout=str(command.stdout),
            stderr=str(command.stderr),
            keep=KEEP_BYTES,
            grace=GRACE_SECONDS,
            secrets=command.secrets,
        )

    async def _await_report(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Literal["timeout", "cancelled"] | None, list[str]]:
        report = asyncio.create_task(reader.read())
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({report, stop}, timeout=self._command.timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        stopped: Literal["timeout", "cancelled"] | None = None
        if not report.done():
            stopped = "cancelled" if stop.done() else "timeout"
            writer.write_eof()
        stop.cancel()
        return stopped, (await report).decode().splitlines()


def _read_report(report: list[str], end: Ended) -> Ended:
    match [line.split() for line in report]:
        case [["started", _], ["ended", status, out, out_dropped, err, err_dropped]]:
            code = os.waitstatus_to_exitcode(int(status))
            return replace(
                end,
                exit_code=code if code >= 0 else None,
                signal=-code if code < 0 else None,
                stdout=Captured(int(out), int(out_dropped)),
                stderr=Captured(int(err), int(err_dropped)),
            )
        case [["refused", number]]:
            missing = int(number) in (errno.ENOENT, errno.ENOTDIR)
            reason = "was not found" if missing else f"could not be executed: {os.strerror(int(number))}"
            return replace(end, exit_code=NOT_FOUND if missing else NOT_EXECUTABLE, problem=reason)
        case [["failed", *words]]:
            return replace(end, exit_code=NOT_EXECUTABLE, problem=f"could not be started: {' '.join(words)}")
        case [["started", pid]]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(pid), signal.SIGKILL)
            return replace(end, problem="lost its guardian and was killed")
        case _:
            return replace(end, exit_code=NOT_EXECUTABLE, problem="could not be started: its guardian failed")
