"""Executions that go on outside of any worker slot: launched, seen to their end and cancelled by whoever is there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from temporalio import activity

from activities.account import Account, identity_of
from activities.watching import beating
from domain.lost_run import Ending
from domain.run import Run, RunState
from domain.values import Value
from executors.protocol import Detached, DetachedExecutor, Outcome, Refused
from executors.registry import Registry


class DetachedRun(Value):
    run: Run
    """Claimed, and recorded as running."""
    timeout_seconds: int


@dataclass(frozen=True)
class DetachedActivities:
    executors: Registry
    account: Account

    @activity.defn(name="almanac.launch")
    async def launch(self, order: DetachedRun) -> None:
        """Raises while it can't be launched."""
        await self._executor(order.run).launch(_execution(order))

    @activity.defn(name="almanac.observe")
    async def observe(self, order: DetachedRun) -> Ending:
        """How it ended, once it has; an end is written down before this returns. Raises while it can't be looked at."""
        with beating():
            outcome = await self._executor(order.run).observe(_execution(order))
            return await self._told(order.run, outcome)

    @activity.defn(name="almanac.cancel_execution")
    async def cancel(self, order: DetachedRun) -> None:
        await self._executor(order.run).cancel(_execution(order))

    async def look(self, run: Run, seconds: float) -> Ending | None:
        """How it ended, unless it goes on for longer than that or nothing can be seen of it now."""
        try:
            async with asyncio.timeout(seconds):
                outcome = await self._executor(run).observe(_execution(DetachedRun(run=run, timeout_seconds=0)))
        except Exception as error:
            activity.logger.info("scheduler.execution_unseen %s", error)
            return None
        return await self._told(run, outcome)

    async def _told(self, run: Run, outcome: Outcome) -> Ending:
        if outcome.state is not RunState.UNKNOWN:
            await self.account.close(run, outcome)
        return Ending(state=outcome.state, reason=outcome.reason, message=outcome.message)

    def _executor(self, run: Run) -> DetachedExecutor:
        """Raises Refused where this worker does not have it; another one may."""
        executor = self.executors.for_run(run.executor)
        if not isinstance(executor, DetachedExecutor):
            raise Refused("executor_unavailable", f"The executor '{run.executor}' runs in a slot here.")
        return executor


def _execution(order: DetachedRun) -> Detached:
    return Detached(
        identity=identity_of(order.run), snapshot=order.run.prepared or {}, timeout_seconds=order.timeout_seconds
    )
