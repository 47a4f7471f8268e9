"""One program, run to its end: as its own session, under a guardian that ends all of it, with its output in files.

The worker's event loop reads none of the output, so neither a flood of it nor its size touches the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

GUARDIAN = Path(__file__).with_name("guardian.py")

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


class Program:
    """One run of a command. `ended` is there as soon as nothing of it is left, also when `run` was cancelled."""

    def __init__(self, command: Command) -> None:
        self.ended: Ended | None = None
        self._command = command
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
            guardian = await self._start_guardian()
        except (OSError, ValueError) as error:
            now = datetime.now(UTC)
            return Ended(started_at, now, 0.0, NOT_EXECUTABLE, problem=f"could not be started: {error}")
        stopped, report = await self._await_report(guardian)
        seconds = time.monotonic() - clock
        return _read_report(report, Ended(started_at, datetime.now(UTC), seconds, None, stopped=stopped))

    async def _start_guardian(self) -> asyncio.subprocess.Process:
        command = self._command
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(GUARDIAN), str(KEEP_BYTES), str(GRACE_SECONDS)),
            *(str(command.stdout), str(command.stderr), *command.argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=command.directory,
            env=dict(command.environment),
            start_new_session=True,
        )

    async def _await_report(
        self, guardian: asyncio.subprocess.Process
    ) -> tuple[Literal["timeout", "cancelled"] | None, list[str]]:
        assert guardian.stdin is not None
        assert guardian.stdout is not None
        report = asyncio.create_task(guardian.stdout.read())
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait(
                {report, stop}, timeout=self._command.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            stopped: Literal["timeout", "cancelled"] | None = None
            if not report.done():
                stopped = "cancelled" if stop.done() else "timeout"
        finally:
            # The end of the lifeline: the guardian stops the program, whatever becomes of us.
            guardian.stdin.close()
            stop.cancel()
        lines = (await report).decode().splitlines()
        await guardian.wait()
        return stopped, lines


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
        case [["started", pid]]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(pid), signal.SIGKILL)
            return replace(end, problem="lost its guardian and was killed")
        case _:
            return replace(end, exit_code=NOT_EXECUTABLE, problem="could not be started: its guardian failed")
