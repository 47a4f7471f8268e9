"""A run's execution that needs no worker slot: launched, cancelled and seen to its end from the run's workflow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.detached import DetachedActivities, DetachedRun
    from activities.watching import BEAT_SECONDS
    from domain import lost_run
    from domain.lane import MISSED_HEARTBEATS, Launch, fence
    from domain.lost_run import Ending
    from domain.run import Run

CALL = timedelta(seconds=30)
"""How long one try to launch or to cancel may take."""

LONGEST_LOOK = timedelta(hours=24)
"""After that another worker looks, should the one that looks have fallen asleep."""

PATIENT = RetryPolicy(maximum_interval=timedelta(seconds=30))


class DetachedExecution:
    def __init__(self, run: Run, launch: Launch) -> None:
        self._order = DetachedRun(run=run, timeout_seconds=launch.execution_timeout_seconds)
        worth = timedelta(seconds=launch.lateness_seconds) + fence(launch.heartbeat_seconds)
        self._until = (run.started_at or workflow.now()) + worth
        self._is_launched = False

    async def launch(self) -> None:
        """For as long as it is worth starting, and as it takes to notice that a worker is lost. When that fails, its
        end will tell whether it was launched."""
        left = self._until - workflow.now()
        if left <= timedelta(0):
            return
        try:
            await workflow.execute_activity_method(
                DetachedActivities.launch,
                self._order,
                schedule_to_close_timeout=left,
                start_to_close_timeout=CALL,
                retry_policy=PATIENT,
                summary=f"launch {self._order.run.target}",
            )
        except ActivityError:
            return
        self._is_launched = True

    async def end(self, is_cancelled: Callable[[], bool]) -> Ending:
        """How it ended. Once it is cancelled it is asked to end, and still waited for."""
        observing = workflow.start_activity_method(
            DetachedActivities.observe,
            self._order,
            start_to_close_timeout=LONGEST_LOOK,
            heartbeat_timeout=timedelta(seconds=BEAT_SECONDS * MISSED_HEARTBEATS),
            retry_policy=PATIENT,
            summary=f"until {self._order.run.target} has ended",
        )
        await workflow.wait_condition(lambda: observing.done() or is_cancelled())
        if not observing.done():
            await self._cancel()
        ending = await observing
        return ending if self._is_launched else lost_run.unconfirmed(ending)

    async def _cancel(self) -> None:
        await workflow.execute_activity_method(
            DetachedActivities.cancel,
            self._order,
            start_to_close_timeout=CALL,
            retry_policy=PATIENT,
            summary=f"cancel {self._order.run.target}",
        )
