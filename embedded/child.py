"""One process that belongs to this one: own process group, own log file, gone when this process is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_BOUND = Path(__file__).with_name("bound.py")


def bound_argv(argv: Sequence[str], *, user: str = "", death_signal: signal.Signals = signal.SIGKILL) -> list[str]:
    """`argv` as a process that changes to `user` and gets `death_signal` when this process ends."""
    return [sys.executable, "-I", "-S", str(_BOUND), str(os.getpid()), str(int(death_signal)), user, *argv]


class Child:
    """A process started in its own session, so that a terminal's Ctrl-C reaches only its owner.

    Start it from a thread that lives as long as the process should: the kernel takes the end of the starting
    thread for the end of the parent.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        user: str = "",
        death_signal: signal.Signals = signal.SIGKILL,
        umask: int = -1,
    ) -> None:
        self.argv = list(argv)
        self.log = log
        self._cwd = cwd
        self._env = dict(os.environ if env is None else env)
        self._user = user
        self._death_signal = death_signal
        self._umask = umask
        self._process: asyncio.subprocess.Process | None = None
        self._swept = True

    @property
    def pid(self) -> int | None:
        """The process's id, also after its end; None before the first start."""
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start a new process; its output is appended to the log file."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *bound_argv(self.argv, user=self._user, death_signal=self._death_signal),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self._cwd,
                env=self._env,
                start_new_session=True,
                umask=self._umask,
            )
        self._swept = False

    async def wait(self) -> int:
        """The exit code (negative: the signal that ended it), once the process has ended."""
        assert self._process is not None, "not started"
        code = await self._process.wait()
        self.kill()
        return code

    async def stop(self, *steps: tuple[signal.Signals, float]) -> None:
        """Send each signal in turn, waiting its seconds for the end; then kill the whole process group."""
        for step, seconds in steps:
            if not self.running:
                break
            self.send(step)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wait(), seconds)
        self.kill()
        if self._process is not None:
            await self.wait()

    def send(self, what: signal.Signals) -> None:
        """Signal the process itself, not its group; nothing happens when it has ended."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(what)

    def kill(self) -> None:
        """SIGKILL to all that is left of the process group."""
        if self._process is None or self._swept:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # Once more at most after the process's own end: its number may then belong to somebody else.
        self._swept = not self.running

    def last_words(self) -> str:
        """The last non-empty line of the log: mostly why the process ended."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
