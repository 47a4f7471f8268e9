"""What an author is told beside the answer: warnings, from the patterns and from how long runs have taken."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from domain import advice
from domain.schedule import ScheduleView
from domain.values import Value
from readmodel import durations
from readmodel.database import Database
from readmodel.dependencies import Dependencies
from readmodel.queries import Queries


class SavedSchedule(ScheduleView):
    """The schedule as it was saved, and what its author should know. A warning never keeps anything from being
    saved."""

    warnings: tuple[str, ...] = ()


class Advice(Value):
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Adviser:
    database: Database
    queries: Queries
    dependencies: Dependencies

    async def warnings(self, view: ScheduleView, now: datetime) -> tuple[str, ...]:
        """About its parents, and about independent schedules of the same target that are due too close to it."""
        kin = await self.dependencies.read(view.workspace, view.definition.parents)
        same_target = await self.queries.schedules_by_target(view.workspace, view.target)
        others = {
            other.schedule_id: other.definition
            for other in same_target
            if other.schedule_id != view.schedule_id
            and advice.independent(view.schedule_id, other.schedule_id, kin.edges)
        }
        known = {view.schedule_id, *view.definition.parents, *others}
        usual = await durations.usual(self.database, known)
        return await asyncio.to_thread(
            lambda: (
                *advice.on_parents(view.definition, kin.definitions, usual, now),
                *advice.on_overlaps(view.schedule_id, view.definition, others, usual, now),
            )
        )

    async def saved(self, view: ScheduleView, now: datetime) -> SavedSchedule:
        return SavedSchedule(**dict(view), warnings=await self.warnings(view, now))
