"""The bond between an execution and Temporal: signs of life, and every way of being told to stop.

A worker that can't reach Temporal stops its own executions before Temporal takes it for lost, so that whoever
comes next on the lane does not run beside them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from domain.lane import MISSED_HEARTBEATS

T = TypeVar("T")

LONGEST_SILENCE_SECONDS = 5.0
"""A cancellation comes with the answer to a heartbeat, so this bounds how long it takes to arrive. A shorter run needs
no heartbeat."""

SILENT = frozenset({RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})


class Lifeline:
    """To be entered in the activity itself."""

    def __init__(self, client: Client, heartbeat_seconds: int) -> None:
        self._client = client
        self._beat_seconds = min(heartbeat_seconds, LONGEST_SILENCE_SECONDS)
        self._patience_seconds = heartbeat_seconds * (MISSED_HEARTBEATS - 1)
        self._stop = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        self._word: str | None = None

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        assert self._beating is not None
        self._beating.cancel()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def progress(self, word: str) -> None:
        """Goes along with the next signs of life, for people."""
        self._word = word

    async def carry(self, work: Awaitable[T]) -> T:
        """The answer of `work`, which is never interrupted: when the activity is cancelled, `watch` is told."""
        carried = asyncio.ensure_future(work)
        while not carried.done():
            try:
                await asyncio.wait({carried})
            except asyncio.CancelledError:
                self._stop.set()
        return carried.result()

    async def watch(self, work: asyncio.Task[T]) -> None:
        """Returns when `work` is over. It is cancelled when the execution has to stop."""
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not work.done():
            work.cancel()
            await asyncio.wait({work})

    async def _beat(self) -> None:
        answered = time.monotonic()
        while not self.stopping:
            await asyncio.sleep(self._beat_seconds)
            activity.heartbeat(self._word)
            if await self._reachable():
                answered = time.monotonic()
            elif time.monotonic() - answered > self._patience_seconds:
                activity.logger.error("scheduler.contact_lost")
                self._stop.set()

    async def _reachable(self) -> bool:
        try:
            await self._client.service_client.check_health(timeout=timedelta(seconds=self._beat_seconds))
        except RPCError as error:
            return error.status not in SILENT
        return True
