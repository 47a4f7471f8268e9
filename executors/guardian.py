"""Stands between a worker and one program, so that nothing of the program outlives its step or its worker.

Run as a file (`python -I -S guardian.py KEEP GRACE STDOUT STDERR PROGRAM [ARGUMENT…]`), in the program's
environment and directory. It imports next to nothing, because every step waits for it to start.

Standard input is the lifeline: its end means "stop", and comes when the worker wants that or is dead, however
it died. Stopping is SIGTERM, GRACE seconds, SIGKILL, and reaches the program's process group as well as
whatever left it: on Linux orphaned descendants become children of the guardian. The same happens to what the
program leaves behind when it ends by itself. The guardian ends last.

The program's output goes to the two files, which exist. Of each stream the first and the last KEEP bytes are
kept, so a program that floods it fills neither memory nor disk, and its last words are there.

Standard output carries the report, one line each:
    started PID
    refused ERRNO                                   the program could not be executed; nothing follows
    ended STATUS BYTES DROPPED BYTES DROPPED        wait status; then of stdout and stderr
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CHUNK = 1 << 18
RESCAN_SECONDS = 0.05


class Capture:
    """One stream of the program into one file: the first bytes as they come, the last ones at the end."""

    def __init__(self, path: str, keep: int) -> None:
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        self.size = 0
        self.dropped = 0
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._keep = keep
        self._head_size = 0
        self._tail = bytearray()
        self._oldest = 0
        """Where the tail's oldest byte is, once the tail goes round."""

    def pump(self) -> bool:
        """Takes what is there; False when there will be no more."""
        try:
            chunk = os.read(self.source, CHUNK)
        except BlockingIOError:
            return True
        self.size += len(chunk)
        head = chunk[: self._keep - self._head_size]
        self._head_size += len(head)
        self._write(head)
        self._remember(chunk[len(head) :][-self._keep :])
        return bool(chunk)

    def finish(self) -> None:
        """Takes what is still in the pipe and writes the end. Only when all who could write are gone."""
        before = -1
        while before != self.size:
            before = self.size
            self.pump()
        left_out = self.size - self._head_size - len(self._tail)
        if left_out:
            self._write(b"\n[%d bytes left out]\n" % left_out)
            self.dropped += left_out
        self._write(self._tail[self._oldest :])
        self._write(self._tail[: self._oldest])
        os.close(self._file)

    def _remember(self, rest: bytes) -> None:
        growth = rest[: self._keep - len(self._tail)]
        self._tail += growth
        rest = rest[len(growth) :]
        while rest:
            part = rest[: self._keep - self._oldest]
            self._tail[self._oldest : self._oldest + len(part)] = part
            self._oldest = (self._oldest + len(part)) % self._keep
            rest = rest[len(part) :]

    def _write(self, content: bytes | bytearray) -> None:
        """A full disk must not stop the program: what finds no room is left out and counted."""
        while content:
            try:
                written = os.write(self._file, content)
            except OSError:
                self.dropped += len(content)
                return
            content = content[written:]


class Tree:
    """The program and all that descends from it."""

    def __init__(self, program: int, grace: float) -> None:
        self.status: int | None = None
        """The program's wait status, once it has ended."""
        self._program = program
        self._grace = grace
        self._kill_at: float | None = None
        self._warned: set[int] = set()

    @property
    def stopping(self) -> bool:
        return self._kill_at is not None

    def stop(self) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace
            self._signal_group(signal.SIGTERM)

    def press(self) -> None:
        """While stopping: a word to whoever has come to light since, and the end of patience."""
        assert self._kill_at is not None
        if time.monotonic() >= self._kill_at:
            self._signal_group(signal.SIGKILL)
            for pid in _children():
                _signal(pid, signal.SIGKILL)
        else:
            for pid in _children() - self._warned - {self._program}:
                self._warned.add(pid)
                _signal(pid, signal.SIGTERM)

    def reap(self) -> bool:
        """Takes note of who has ended; False when nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                # Where orphans don't come to us, the program's group is all that can still be reached.
                self._signal_group(signal.SIGKILL)
                return False
            if pid == 0:
                return True
            if pid == self._program:
                self.status = status

    def _signal_group(self, number: int) -> None:
        try:
            os.killpg(self._program, number)
        except (ProcessLookupError, PermissionError):
            return


def main(keep: int, grace: float, paths: tuple[str, str], program: list[str]) -> None:
    if sys.platform == "linux":
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_signals()
    captures = [Capture(path, keep) for path in paths]
    pid, error = _execute(program, captures[0].sink, captures[1].sink)
    if error:
        _report(f"refused {error}")
        return
    _report(f"started {pid}")
    tree = Tree(pid, grace)
    _watch(tree, captures, wake)
    for capture in captures:
        capture.finish()
    counts = " ".join(f"{capture.size} {capture.dropped}" for capture in captures)
    _report(f"ended {tree.status} {counts}")


def _watch(tree: Tree, captures: list[Capture], wake: int) -> None:
    """Returns when the program and all that it started are gone."""
    lifeline = sys.stdin.fileno()
    streams = {capture.source: capture for capture in captures}
    poller = select.poll()
    for descriptor in (lifeline, wake, *streams):
        poller.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll(RESCAN_SECONDS * 1000 if tree.stopping else None):
            if descriptor in streams:
                if not streams[descriptor].pump():
                    poller.unregister(descriptor)
            elif descriptor == lifeline:
                if not os.read(lifeline, CHUNK):
                    poller.unregister(lifeline)
                    tree.stop()
            elif set(os.read(wake, CHUNK)) - {signal.SIGCHLD}:
                tree.stop()
        if not tree.reap():
            return
        if tree.status is not None:
            tree.stop()
        if tree.stopping:
            tree.press()


def _wake_on_signals() -> int:
    """A descriptor that becomes readable, with the signal's number, when a child ends or we are asked to."""
    wake, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return wake


def _execute(program: list[str], stdout: int, stderr: int) -> tuple[int, int]:
    """The program's pid and 0, or 0 and why it could not be executed."""
    guardian = os.getpid()
    failure, failed = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(program, stdout, stderr, guardian)
        except OSError as error:
            os.write(failed, str(error.errno).encode())
        finally:
            os._exit(127)
    for descriptor in (failed, stdout, stderr):
        os.close(descriptor)
    reason = os.read(failure, 16)
    os.close(failure)
    if not reason:
        return pid, 0
    os.waitpid(pid, 0)
    return 0, int(reason)


def _become(program: list[str], stdout: int, stderr: int, guardian: int) -> None:
    os.setsid()
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            return
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.execvp(program[0], program)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _children() -> set[int]:
    """Who has the guardian as parent, by birth or as an orphan. Empty where there is no /proc."""
    found = set()
    me = os.getpid()
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == me:
            found.add(int(name))
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _report(line: str) -> None:
    try:
        os.write(sys.stdout.fileno(), f"{line}\n".encode())
    except BrokenPipeError:
        # The worker is gone; there is nobody to tell.
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), (sys.argv[3], sys.argv[4]), sys.argv[5:])
