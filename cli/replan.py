"""`almanac replan`: new plans after a release of the zone data, and which local times it puts at another instant.

Each schedule stands alone: one that is refused, because somebody deletes it meanwhile, stops no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.client import Refused
from cli.command import REFUSED, Session, complain, explain
from cli.find import schedule_meant
from cli.moments import utc
from domain.schedule import Moved, ScheduleView

ALL = 1_000_000


@dataclass(frozen=True)
class Replanned:
    """What became of one schedule: how it is `now` and what of it moved, or why it was refused."""

    old: ScheduleView
    now: ScheduleView | None
    moved: tuple[Moved, ...] = ()
    problem: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "schedule_id": self.old.schedule_id,
            "name": self.old.definition.name,
            "before": _plan(self.old),
            "after": _plan(self.now) if self.now else None,
            "moved": [moved.model_dump(mode="json") for moved in self.moved],
            "problem": self.problem,
        }


def replan(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[SCHEDULE]", help="Its name or id; all without.")] = None,
) -> None:
    """Compute what is due anew, after a release of the zone data. Nothing is missed and nothing repeated."""
    if name is None:
        before = [ScheduleView.model_validate(item) for item in session.client.pages("/schedules", ALL)]
    else:
        before = [schedule_meant(session.client, name)]
    done = [_replanned(session, old) for old in before]
    lines = [line for one in done for line in _lines(one)]
    session.show([one.as_json() for one in done], lambda: Text("\n".join(lines) or "No schedules."))
    refused = [one for one in done if one.problem is not None]
    for one in refused:
        complain(f"{one.old.definition.name}: {explain(one.problem or {})}")
    if refused:
        raise typer.Exit(REFUSED)


def _replanned(session: Session, old: ScheduleView) -> Replanned:
    try:
        answer = session.client.post(f"/schedules/{old.schedule_id}/replan")
    except Refused as refusal:
        if refusal.is_outage:
            raise
        return Replanned(old, None, problem=refusal.problem)
    moved = tuple(Moved.model_validate(one) for one in answer["moved"])
    return Replanned(old, ScheduleView.model_validate(answer["schedule"]), moved)


def _plan(view: ScheduleView) -> dict[str, Any]:
    return {"next_due_at": _iso(view.next_due_at), "tzdata_version": view.tzdata_version}


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _lines(one: Replanned) -> Iterator[str]:
    if one.now is None:
        return
    due = " → ".join(utc(at) if at else "-" for at in dict.fromkeys((one.old.next_due_at, one.now.next_due_at)))
    data = " → ".join(dict.fromkeys((one.old.tzdata_version or "-", one.now.tzdata_version or "-")))
    yield f"{one.now.definition.name}  due {due}  (zone data {data})"
    for moved in one.moved:
        after = utc(moved.after) if moved.after else "no occurrence of its own"
        yield f"  {moved.nominal:%Y-%m-%d %H:%M}  {utc(moved.before)} → {after}"
