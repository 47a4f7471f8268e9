"""What a schedule has to tell others: its lanes, its parents and its dependents."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from domain.dependency import Answer, Question
from domain.lane import LaneEntry
from domain.values import Value


class RequestLane(Value):
    kind: Literal["request"] = "request"
    lane: str
    entry: LaneEntry
    again: bool = False
    """Sent before, long ago: the run may have begun since, and the lane may know it."""


class WithdrawFromLane(Value):
    kind: Literal["withdraw"] = "withdraw"
    lane: str
    reason: str
    message: str
    only_occurrences: bool


class DropFromLane(Value):
    """A person cancels one run that waits there."""

    kind: Literal["drop"] = "drop"
    lane: str
    run_id: str
    by: str


class ReleaseLane(Value):
    """A person has looked at an unknown run and unblocked: it holds its lane no longer."""

    kind: Literal["release"] = "release"
    lane: str
    run_id: str


Mail = Annotated[RequestLane | WithdrawFromLane | DropFromLane | ReleaseLane, Field(discriminator="kind")]
"""To a lane. Letters to one lane are delivered in order, each before the next is sent."""


class AskParent(Value):
    kind: Literal["ask"] = "ask"
    schedule_id: str
    question: Question


class TellDependent(Value):
    kind: Literal["answer"] = "answer"
    schedule_id: str
    answer: Answer


class Subscribe(Value):
    kind: Literal["subscribe"] = "subscribe"
    schedule_id: str
    subscriber: str
    on: bool


class ParentDue(Value):
    """An occurrence of a parent fell due."""

    parent_id: str
    at: datetime
    nominal: tuple[datetime, ...]
    dates: tuple[date, ...]


class AnnounceDue(Value):
    kind: Literal["due"] = "due"
    schedule_id: str
    due: ParentDue


Letter = Annotated[AskParent | TellDependent | Subscribe | AnnounceDue, Field(discriminator="kind")]
"""To another schedule. Each may come twice and out of order, and means the same."""
