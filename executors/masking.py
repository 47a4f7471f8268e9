"""Keeps secrets out of a stream of bytes, also where one comes in two pieces.

Whatever may be the beginning of a secret is held back until it is clear whether it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = b"********"


def masked(text: str, hidden: Iterable[str]) -> str:
    """The text without any of the secrets in it."""
    masking = Masking(secret.encode() for secret in hidden)
    return (masking.feed(text.encode()) + masking.finish()).decode(errors="replace")


class Masking:
    """One stream. Of several secrets that begin at one place the longest counts."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)), re.DOTALL)
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What may be passed on now."""
        if not self._secrets:
            return piece
        return self._passed(self._held + piece, final=False)

    def finish(self) -> bytes:
        """What was held back; nothing comes after it."""
        return self._passed(self._held, final=True) if self._secrets else b""

    def _passed(self, data: bytes, *, final: bool) -> bytes:
        undecided = len(data) if final else self._undecided(data)
        passed, at = [], 0
        for found in self._pattern.finditer(data):
            if found.start() >= undecided:
                break
            passed += [data[at : found.start()], MASK]
            at = found.end()
        end = max(at, undecided)
        self._held = data[end:]
        return b"".join([*passed, data[at:end]])

    def _undecided(self, data: bytes) -> int:
        """From where on the data may be the beginning of a secret."""
        first = len(data)
        for secret in self._secrets:
            at = data.find(secret[:1], max(0, len(data) - len(secret) + 1), first)
            while at >= 0 and not secret.startswith(data[at:]):
                at = data.find(secret[:1], at + 1, first)
            first = at if at >= 0 else first
        return first
