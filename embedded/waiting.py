"""Waiting for a process that has been started to be of use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from domain.errors import Unavailable
from embedded.child import Child

_PAUSE_SECONDS = 0.02


async def until_ready(name: str, child: Child, ready: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Return once `ready()` holds. Raises Unavailable `embedded.start_failed` when the process ends before
    that, or after `seconds`; the sentence has the log's last line and the log's place."""
    try:
        async with asyncio.timeout(seconds):
            while not await ready():
                if not child.running:
                    raise Unavailable(
                        "embedded.start_failed",
                        f"{name} ended while starting: {child.last_words()}",
                        hint=f"its log is {child.log}",
                    )
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise Unavailable(
            "embedded.start_failed",
            f"{name} was not ready within {seconds:.0f} seconds: {child.last_words()}",
            hint=f"its log is {child.log}",
        ) from None
