"""What a schedule sends: to its lanes, to other schedules and to the read model. Each thing waits in the state until
it is delivered, and no direction waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.mirror import MirrorActivities
    from activities.post import LaneLetter, Letters, PostActivities
    from domain.events import Events
    from domain.schedule_state import ScheduleState
    from workflows.outlet import ONCE, QUICK, Outlet


LETTERS_AT_ONCE = 50
"""So many are sent well within the time of a short activity, also where the machine is busy; a batch that is not done
in time is sent again as a whole."""


class Dispatch:
    """`live` answers the state as it is; `keep` takes the state without what was delivered."""

    def __init__(self, live: Callable[[], ScheduleState], keep: Callable[[ScheduleState], None]) -> None:
        self._live = live
        self._keep = keep
        self._outlets = (Outlet(self._send_mail), Outlet(self._send_letters), Outlet(self._project))

    @property
    def retry_at(self) -> datetime | None:
        """When what could not be delivered is next tried again."""
        return min((outlet.retry_at for outlet in self._outlets if outlet.retry_at is not None), default=None)

    async def deliver(self) -> None:
        await asyncio.gather(*(outlet.deliver() for outlet in self._outlets))

    async def _send_mail(self) -> None:
        while self._live().mail:
            state = self._live()
            letter = LaneLetter(workspace=state.workspace, schedule_id=state.schedule_id, mail=state.mail[0])
            await workflow.execute_local_activity_method(
                PostActivities.tell_lane, letter, start_to_close_timeout=QUICK, retry_policy=ONCE
            )
            self._keep(self._live().but(mail=self._live().mail[1:]))

    async def _send_letters(self) -> None:
        while self._live().letters:
            state = self._live()
            some = state.letters[:LETTERS_AT_ONCE]
            await workflow.execute_local_activity_method(
                PostActivities.tell_kin,
                Letters(workspace=state.workspace, sender=state.schedule_id, letters=some),
                start_to_close_timeout=QUICK,
                retry_policy=ONCE,
            )
            self._keep(self._live().but(letters=self._live().letters[len(some) :]))

    async def _project(self) -> None:
        while self._live().bundles:
            await workflow.execute_local_activity_method(
                MirrorActivities.project_bundle,
                self._live().bundles[0],
                start_to_close_timeout=QUICK,
                retry_policy=ONCE,
            )
            self._keep(self._live().but(bundles=self._live().bundles[1:]))
        events = self._live().outbox
        if not events:
            return
        await workflow.execute_local_activity_method(
            MirrorActivities.project,
            Events(events=events),
            start_to_close_timeout=QUICK,
            retry_policy=ONCE,
        )
        sent = {id(event) for event in events}
        self._keep(self._live().but(outbox=tuple(event for event in self._live().outbox if id(event) not in sent)))
