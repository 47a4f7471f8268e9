"""What the passing of time does to a schedule: decides by the recorded plan, and looks up what lies beyond it."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.planning import Outlook, PlanningActivities
    from domain import schedule_due, schedule_lane
    from domain.planning import LookAround
    from domain.schedule_state import ScheduleState
    from workflows.outlet import QUICK


class Time:
    """`live` answers the state as it is; `put` takes the one that follows, and has it looked at again."""

    def __init__(self, live: Callable[[], ScheduleState], put: Callable[[ScheduleState], None]) -> None:
        self._live = live
        self._put = put

    async def decide(self) -> None:
        now = workflow.now()
        ticked = schedule_lane.offered_again(schedule_lane.gate_tick(self._live(), now), now)
        if ticked is not self._live():
            self._put(ticked)
        state = self._live()
        request = schedule_due.look_around(state, now)
        if request is not None:
            await self._look_around(request)
            return
        backlog = schedule_due.planned_backlog(state, now) if state.fires else None
        if backlog is not None:
            self._put(schedule_due.due(state, backlog, now))

    async def _look_around(self, request: LookAround) -> None:
        """What was found counts only if it is still what is asked for: an edit may have come in between."""
        now = workflow.now()
        outlook: Outlook = await workflow.execute_local_activity_method(
            PlanningActivities.look_around, request, start_to_close_timeout=QUICK
        )
        if schedule_due.look_around(self._live(), now) != request:
            self._put(self._live())
            return
        found = self._live().but(heartbeat_seconds=outlook.heartbeat_seconds)
        if outlook.seen is None:
            self._put(schedule_due.not_accepted(found, outlook.refusal or "", now))
        else:
            self._put(schedule_due.seen(found, outlook.seen, now))
