"""What parents and dependents have to look up: zone data, and what fell due longer ago than a schedule remembers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio import activity

from domain import planning, schedule_parent
from domain.planning import WaitEnds, WaitEndsFound
from domain.run import Run
from domain.schedule_parent import Found, Lookup, Outcome
from readmodel.queries import Queries


@dataclass(frozen=True)
class KinshipActivities:
    queries: Queries

    @activity.defn(name="almanac.match_occurrences")
    async def match_occurrences(self, request: Lookup) -> Found:
        return schedule_parent.look_up(request, await self._recalled(request))

    @activity.defn(name="almanac.wait_ends")
    async def wait_ends(self, request: WaitEnds) -> WaitEndsFound:
        return planning.wait_ends(request)

    async def _recalled(self, request: Lookup) -> tuple[Outcome, ...]:
        first = min(day for question in request.questions for day in question.dates)
        since = datetime(first.year, first.month, first.day, tzinfo=UTC) - timedelta(days=2)
        if since >= request.remembered_since:
            return ()
        runs = await self.queries.occurrences_between(request.schedule_id, since, request.remembered_since)
        return tuple(_outcome(run) for run in runs if run.scheduled_for is not None)


def _outcome(run: Run) -> Outcome:
    assert run.scheduled_for is not None
    return Outcome(
        at=run.scheduled_for,
        dates=tuple(dict.fromkeys(nominal.date() for nominal in run.nominal)),
        run_id=run.run_id,
        state=run.state,
        reason=run.reason,
        changed_at=run.changed_at,
        stands_in=run.stands_in,
    )
