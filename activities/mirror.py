"""The read model, told what changed. May be repeated: the newest value of each thing wins."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from domain import outbox
from domain.events import Events
from domain.outbox import Bundle
from readmodel.projection import Projector


@dataclass(frozen=True)
class MirrorActivities:
    projector: Projector

    @activity.defn(name="almanac.project")
    async def project(self, events: Events) -> None:
        await self.projector.project(events.events)

    @activity.defn(name="almanac.project_bundle")
    async def project_bundle(self, bundle: Bundle) -> None:
        await self.projector.project(outbox.unpack(bundle))
