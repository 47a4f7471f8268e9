"""What workflows tell the read model: each event carries the whole new value and its number, so that events
may be repeated, delayed or overtaken and the newest still wins."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from domain.run import Advanced
from domain.schedule import ScheduleView
from domain.values import Value


class ScheduleChanged(Value):
    kind: Literal["schedule"] = "schedule"
    schedule: ScheduleView


class RunChanged(Value):
    kind: Literal["run"] = "run"
    change: Advanced


Event = Annotated[ScheduleChanged | RunChanged, Field(discriminator="kind")]


class Events(Value):
    events: tuple[Event, ...]
