"""When many executions begin at once, their ends are told a moment later, so that those still to begin go first.

How an execution ended, and when, is written down before; what follows from its end waits for the surge to be over.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

MANY = 8
WINDOW_SECONDS = 2.0
"""So many beginnings within so long are a surge."""

LONGEST_SECONDS = 10.0
"""No end is held back for longer."""

LOOK_SECONDS = 0.1


class Surge:
    """Of one process. `slots` is how many executions it takes at once: no slot that is wanted is held."""

    def __init__(self, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._clock = clock
        self._taken = 0
        self._begun: deque[float] = deque(maxlen=MANY)

    def __enter__(self) -> None:
        self._taken += 1

    def __exit__(self, *_: object) -> None:
        self._taken -= 1

    def begun(self) -> None:
        """An execution begins."""
        self._begun.append(self._clock())

    @property
    def is_on(self) -> bool:
        """Whether ends are to wait."""
        many = len(self._begun) == MANY and self._clock() - self._begun[0] < WINDOW_SECONDS
        return many and self._taken * 2 <= self._slots

    async def over(self) -> None:
        """Returns when the surge is over, or has lasted for too long."""
        until = self._clock() + LONGEST_SECONDS
        while True:
            if not self.is_on or self._clock() > until:
                return
            await asyncio.sleep(LOOK_SECONDS)
