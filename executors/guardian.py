"""Stands between a worker and one program, so that nothing of the program outlives its step or its worker.

A guardian has one link with its worker, a socket. Its end means "stop", and comes when the worker wants that or
is dead, however it died. Stopping is SIGTERM, a grace, SIGKILL, and reaches the program's process group as well
as whatever left it: on Linux orphaned descendants become children of the guardian. The same happens to what
the program leaves behind when it ends by itself. The guardian ends last. Over the link it reports, a line each:

    started PID
    refused ERRNO                                   the program could not be executed; nothing follows
    failed WORDS                                    nothing could be started; nothing follows
    ended STATUS BYTES DROPPED BYTES DROPPED        wait status; then of stdout and stderr

Starting Python for each guardian would take longer than most steps wait for anything else. So a worker starts
one process (`python -m executors.guardian`, with its own link as standard input) that forks a guardian per
order, and ends when that link does. It imports little, so that forking it is cheap.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import NamedTuple

from executors.capture import Capture

PR_SET_CHILD_SUBREAPER = 36
RESCAN_SECONDS = 0.05
HEADER = struct.Struct("!Q")


class Order(NamedTuple):
    """What one guardian is to run. Output goes to the two files, which exist; `keep` bytes of each end stay."""

    argv: tuple[str, ...]
    environment: tuple[str, ...]
    """`NAME=value`; the program gets these and no others."""
    directory: str
    stdout: str
    stderr: str
    keep: int
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    secrets: tuple[str, ...] = ()
    """What is masked in the output."""

    def pack(self) -> bytes:
        """Raises ValueError for what no program can be given."""
        fields = [self.directory, self.stdout, self.stderr, str(self.keep), str(self.grace)]
        fields += [str(len(self.argv)), str(len(self.secrets)), *self.argv, *self.secrets, *self.environment]
        if any("\0" in field for field in fields):
            raise ValueError("a NUL character can't be passed to a program")
        body = b"\0".join(os.fsencode(field) for field in fields)
        return HEADER.pack(len(body)) + body

    @classmethod
    def unpack(cls, body: bytes) -> Order:
        directory, stdout, stderr, keep, grace, words, count, *rest = map(os.fsdecode, body.split(b"\0"))
        argv, rest = tuple(rest[: int(words)]), rest[int(words) :]
        secrets, environment = tuple(rest[: int(count)]), tuple(rest[int(count) :])
        return cls(argv, environment, directory, stdout, stderr, int(keep), float(grace), secrets)


def serve(worker: socket.socket) -> None:
    """Forks a guardian for each order that comes with a link, until the worker is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        header, links, _, _ = socket.recv_fds(worker, HEADER.size, 1)
        if not header:
            return
        (size,) = HEADER.unpack(header)
        body = worker.recv(size, socket.MSG_WAITALL)
        if os.fork() == 0:
            try:
                worker.close()
                guard(Order.unpack(body), links[0])
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(0)
        os.close(links[0])


def guard(order: Order, link: int) -> None:
    """Runs the order to the end of everything that it started."""
    os.set_inheritable(link, False)
    wake = _wake_on_signals()
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        os.chdir(order.directory)
        secrets = [os.fsencode(secret) for secret in order.secrets]
        captures = [Capture(path, order.keep, secrets) for path in (order.stdout, order.stderr)]
    except OSError as error:
        return _report(link, f"failed {error}")
    try:
        pid = _execute(order, captures[0].sink, captures[1].sink)
    except OSError as error:
        return _report(link, f"refused {error.errno}")
    except ValueError:
        return _report(link, f"refused {errno.EINVAL}")
    _report(link, f"started {pid}")
    tree = Tree(pid, order.grace)
    _watch(tree, captures, link, wake)
    for capture in captures:
        capture.finish()
    counts = " ".join(f"{capture.size} {capture.dropped}" for capture in captures)
    return _report(link, f"ended {tree.status} {counts}")


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


def _watch(tree: Tree, captures: list[Capture], lifeline: int, wake: int) -> None:
    """Returns when the program and all that it started are gone."""
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
                # Nothing is ever sent: readable is the end.
                poller.unregister(lifeline)
                tree.stop()
            elif set(os.read(wake, 4096)) - {signal.SIGCHLD}:
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


def _execute(order: Order, stdout: int, stderr: int) -> int:
    """The pid of the program, in a session of its own. Spawning is several times faster than forking once more."""
    environment = dict(entry.split("=", 1) for entry in order.environment)
    # Where the program is looked for.
    os.environ["PATH"] = environment.get("PATH", os.defpath)
    pid = os.posix_spawnp(
        order.argv[0],
        order.argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )
    os.close(stdout)
    os.close(stderr)
    return pid


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


def _report(link: int, line: str) -> None:
    try:
        os.write(link, f"{line}\n".encode())
    except ConnectionError:
        # The worker is gone; there is nobody to tell.
        return


if __name__ == "__main__":
    # The first process ends at once, so that nobody has to wait for the one that stays.
    if os.fork() == 0:
        link_with_worker = socket.socket(fileno=os.dup(0))
        # Else a pipe might become standard input, of all descriptors.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        serve(link_with_worker)
