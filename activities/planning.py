"""Occurrences, computed outside of workflow code and recorded."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from domain import planning
from domain.errors import Invalid
from domain.planning import LookAround, Seen
from domain.values import Value


class Outlook(Value):
    seen: Seen | None
    refusal: str | None = None
    """Instead of what was seen: why this definition is not accepted. An answer like any other, because asking again
    would not change it."""
    heartbeat_seconds: int
    """How often executions started from now on have to say that they are alive."""


@dataclass(frozen=True)
class PlanningActivities:
    heartbeat_seconds: int

    @activity.defn(name="almanac.look_around")
    async def look_around(self, request: LookAround) -> Outlook:
        try:
            seen = planning.look_around(request)
        except Invalid as error:
            return Outlook(seen=None, refusal=error.message, heartbeat_seconds=self.heartbeat_seconds)
        return Outlook(seen=seen, heartbeat_seconds=self.heartbeat_seconds)
