"""Waiting for what other processes do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psutil


async def eventually(holds: Callable[[], bool | Awaitable[bool]], seconds: float = 30.0) -> None:
    """Return once it holds; fail when it never does."""
    async with asyncio.timeout(seconds):
        while True:
            answer = holds()
            if await answer if isinstance(answer, Awaitable) else answer:
                return
            await asyncio.sleep(0.02)


def ended(pid: int) -> bool:
    """Whether the process is over, whoever its parent is now and whether or not that has noticed."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
