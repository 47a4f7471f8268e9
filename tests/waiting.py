"""Waiting for a condition, and never for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T | None]], *, within: float = 30.0, what: str = "") -> T:
    """What `look` finds once it finds something truthy. Fails with what was last seen."""
    until = time.monotonic() + within
    while True:
        seen = await look()
        if seen:
            return seen
        if time.monotonic() > until:
            raise AssertionError(f"after {within} s still not {what or look}: {seen!r}")
        await asyncio.sleep(0.02)
