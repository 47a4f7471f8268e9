"""A schedule between its parents and its dependents: what they have said is taken in, what they have asked is
looked up and answered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.kinship import KinshipActivities
    from domain import schedule_dependent, schedule_due, schedule_kin
    from domain.dependency import Answer
    from domain.schedule_mail import ParentDue
    from domain.schedule_state import ScheduleState
    from workflows.outlet import ONCE, QUICK, Outlet


class Kinship:
    """`live` answers the state as it is; `keep` takes the state that follows."""

    def __init__(self, live: Callable[[], ScheduleState], keep: Callable[[ScheduleState], None]) -> None:
        self._live = live
        self._keep = keep
        self._answers: list[Answer] = []
        self._dues: list[ParentDue] = []
        # What is older than a schedule remembers is read from the database, and an outage of that stops no timer.
        self._matching = Outlet(self._match)

    @property
    def retry_at(self) -> datetime | None:
        """When a question that could not be looked up is next looked up."""
        return self._matching.retry_at

    def heard(self, answer: Answer) -> None:
        """Kept until all that came together is taken in together."""
        self._answers.append(answer)

    def parent_due(self, due: ParentDue) -> None:
        self._dues.append(due)

    def taken_in(self) -> ScheduleState:
        """The state after all answers that have come, with the waits that are over ended."""
        answers, self._answers = tuple(self._answers), []
        return schedule_kin.heard(self._live(), answers, workflow.now())

    async def settle(self) -> None:
        if self._dues:
            await self._follow_parents()
        await self._matching.deliver()
        self._keep(schedule_kin.settled(self._live(), workflow.now()))

    async def _follow_parents(self) -> None:
        """Occurrences of a schedule that has no pattern of its own."""
        dues, self._dues = tuple(self._dues), []
        found = await workflow.execute_local_activity_method(
            KinshipActivities.wait_ends,
            schedule_kin.wait_ends(self._live(), dues),
            start_to_close_timeout=QUICK,
            summary="end of the date",
        )
        if found.refusal is not None:
            self._keep(schedule_due.not_accepted(self._live(), found.refusal, workflow.now()))
            return
        for due, end in zip(dues, found.ends, strict=True):
            self._keep(schedule_dependent.driven(self._live(), due, workflow.now(), end))

    async def _match(self) -> None:
        lookup = schedule_kin.lookup(self._live(), workflow.now())
        if lookup is None:
            return
        found = await workflow.execute_local_activity_method(
            KinshipActivities.match_occurrences,
            lookup,
            start_to_close_timeout=QUICK,
            retry_policy=ONCE,
            summary="parent occurrences",
        )
        self._keep(schedule_kin.matched(self._live(), found, workflow.now()))
