"""One timer that is set anew only when its time changes: every timer costs history."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from temporalio import workflow


class Alarm:
    """Rings once `workflow.now()` has reached the time it is set for."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._timer: asyncio.Task[None] | None = None

    def set(self, at: datetime | None, summary: str) -> None:
        if at == self._at and self._timer is not None and not self._timer.done():
            return
        self.cancel()
        if at is not None:
            self._at = at
            self._timer = asyncio.create_task(self._ring(max(at - workflow.now(), timedelta(0)), summary))

    def cancel(self) -> None:
        if self._timer is not None and not self._timer.done():
            self._timer.cancel()
        self._at, self._timer = None, None

    @property
    def rang(self) -> bool:
        return self._timer is not None and self._timer.done()

    async def _ring(self, wait: timedelta, summary: str) -> None:
        await workflow.sleep(wait, summary=summary)
