"""Sending and asking what must not be lost: what fails is tried again later, and nothing else waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from domain import backoff

ONCE = RetryPolicy(maximum_attempts=1)
QUICK = timedelta(seconds=5)
"""How long a short activity may take before it counts as failed."""

FIRST_PAUSE = timedelta(seconds=1)
LAST_PAUSE = timedelta(seconds=30)


class Outlet:
    """One direction in which an entity sends or asks. `send` delivers all that waits, or raises a failure having kept
    what it did not deliver.

    A local activity that fails is raised as what it failed with, not as an ActivityError around that."""

    def __init__(self, send: Callable[[], Awaitable[None]]) -> None:
        self._send = send
        self._failures = 0
        self.retry_at: datetime | None = None

    async def deliver(self) -> None:
        if self.retry_at is not None and workflow.now() < self.retry_at:
            return
        try:
            await self._send()
        except FailureError:
            self.retry_at = workflow.now() + backoff.pause(FIRST_PAUSE, self._failures, LAST_PAUSE)
            self._failures += 1
        else:
            self._failures, self.retry_at = 0, None
