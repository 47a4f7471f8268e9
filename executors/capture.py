"""What is kept of a program's output: of each stream the first and the last bytes, however much there is.

A program that floods its output fills neither memory nor disk, and its last words are there. The secrets it was given
are masked before anything is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from executors.masking import Masking

CHUNK = 1 << 18


class Capture:
    """One stream of the program into one file: the first bytes as they come, the last ones at the end."""

    def __init__(self, path: str, keep: int, secrets: Iterable[bytes] = ()) -> None:
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        self.size = 0
        """Of what the program wrote."""
        self.dropped = 0
        self._masking = Masking(secrets)
        self._passed = 0
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
        self._take(self._masking.feed(chunk))
        return bool(chunk)

    def finish(self) -> None:
        """Takes what is still in the pipe and writes the end. Only when all who could write are gone."""
        before = -1
        while before != self.size:
            before = self.size
            self.pump()
        self._take(self._masking.finish())
        left_out = self._passed - self._head_size - len(self._tail)
        if left_out:
            self._write(b"\n[%d bytes left out]\n" % left_out)
            self.dropped += left_out
        self._write(self._tail[self._oldest :])
        self._write(self._tail[: self._oldest])
        os.close(self._file)

    def _take(self, masked: bytes) -> None:
        self._passed += len(masked)
        head = masked[: self._keep - self._head_size]
        self._head_size += len(head)
        self._write(head)
        self._remember(masked[len(head) :][-self._keep :])

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
