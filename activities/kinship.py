"""What parents and dependents have to look up: zone data, and what fell due longer ago than a schedule remembers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio import activity

from domain import parent_matching, planning
from domain.errors import NotFound
from domain.parent_matching import Found, Lookup, Match, Outcome
from domain.planning import WaitEnds, WaitEndsFound
from domain.run import Run
from domain.schedule import ScheduleDefinition
from domain.schedule_parent import FOLLOWED
from readmodel.queries import Queries


@dataclass(frozen=True)
class KinshipActivities:
    queries: Queries

    @activity.defn(name="almanac.match_occurrences")
    async def match_occurrences(self, request: Lookup) -> Found:
        recalled = tuple(_outcome(run) for run in await self._forgotten(request))
        found = parent_matching.look_up(request, recalled, await self._ancestors(request))
        return Found(matches=tuple([await self._followed(request.workspace, match) for match in found.matches]))

    @activity.defn(name="almanac.wait_ends")
    async def wait_ends(self, request: WaitEnds) -> WaitEndsFound:
        return planning.wait_ends(request)

    async def _forgotten(self, request: Lookup) -> tuple[Run, ...]:
        if request.forgotten is None:
            return ()
        first = min(day for question in request.questions for day in question.dates)
        since = datetime(first.year, first.month, first.day, tzinfo=UTC) - timedelta(days=2)
        if since >= request.forgotten:
            return ()
        return await self.queries.occurrences_between(request.schedule_id, since, request.forgotten)

    async def _ancestors(self, request: Lookup) -> dict[str, ScheduleDefinition]:
        """Up to where patterns are: the definitions from which a driven schedule's occurrences follow."""
        found: dict[str, ScheduleDefinition] = {}
        wanted = list(request.driven_by)
        while wanted:
            schedule_id = wanted.pop()
            if schedule_id in found:
                continue
            try:
                view = await self.queries.schedule(request.workspace, schedule_id)
            except NotFound:
                continue
            found[schedule_id] = view.definition
            if view.definition.is_driven:
                wanted += view.definition.parents
        return found

    async def _followed(self, workspace: str, match: Match) -> Match:
        """A recalled occurrence that was superseded or folded has the outcome of the run that stands for it."""
        recalled = match.recalled
        seen: set[str] = set()
        while (
            recalled is not None and recalled.reason in FOLLOWED and recalled.stands_in and recalled.run_id not in seen
        ):
            seen.add(recalled.run_id)
            stand_in = await self.queries.run(workspace, recalled.stands_in)
            recalled = _outcome(stand_in).model_copy(update={"at": recalled.at, "nominal": recalled.nominal})
        return match.model_copy(update={"recalled": recalled})


def _outcome(run: Run) -> Outcome:
    return Outcome(
        at=run.scheduled_for or run.reference_time,
        nominal=run.nominal,
        run_id=run.run_id,
        seq=run.seq,
        state=run.state,
        reason=run.reason,
        changed_at=run.changed_at,
        stands_in=run.stands_in,
    )
