"""Occurrences, computed outside of workflow code and recorded."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from domain import planning
from domain.planning import LookAround, Seen
from domain.values import Value


class Outlook(Value):
    seen: Seen
    heartbeat_seconds: int
    """How often executions started from now on have to say that they are alive."""


@dataclass(frozen=True)
class PlanningActivities:
    heartbeat_seconds: int

    @activity.defn(name="almanac.look_around")
    async def look_around(self, request: LookAround) -> Outlook:
        return Outlook(seen=planning.look_around(request), heartbeat_seconds=self.heartbeat_seconds)
