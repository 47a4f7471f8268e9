"""Commands about schedules: see them, see what a pattern means, and act on them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from cli import tables
from cli.command import Session, complain
from cli.find import schedule_meant
from domain.schedule import Condition, ScheduleView

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name or its id.")]
LIST_LIMIT = 1_000


def list_schedules(
    session: Session,
    *,
    condition: Annotated[Condition | None, typer.Option(help="Only those in this condition.")] = None,
    q: Annotated[str | None, typer.Option("--q", help="Only those whose name has this in it.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = LIST_LIMIT,
) -> None:
    """List schedules: condition, what is due next, how the last run ended."""
    found = list(session.client.pages("/schedules", limit, condition=condition, q=q))
    views = [ScheduleView.model_validate(item) for item in found]
    session.show(found, lambda: tables.schedules(views, datetime.now(UTC)))
    if len(found) == limit and not session.json:
        complain(f"These are the first {limit}; there may be more (--limit).")


def show(session: Session, name: Name) -> None:
    """Show one schedule: policies, what it is doing, the next occurrences."""
    view = schedule_meant(session.client, name)
    warnings = session.client.get(f"/schedules/{view.schedule_id}/advice")["warnings"]
    body = view.model_dump(mode="json") | {"warnings": warnings}
    session.show(body, lambda: tables.schedule(view, datetime.now(UTC), warnings))


def preview(
    session: Session,
    cron: Annotated[str, typer.Argument(help="Five fields: minute hour day-of-month month day-of-week.")],
    *,
    timezone: Annotated[str, typer.Option("--timezone", "-z", help="IANA zone, such as Europe/Berlin.")] = "UTC",
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100, help="How many occurrences.")] = 5,
) -> None:
    """Show when a pattern would be due, and what the zone's changes do to it, before anything is saved."""
    found = session.client.preview(cron, timezone, count)
    session.show(found, lambda: tables.preview(found, datetime.now(UTC)))


def pause(session: Session, name: Name) -> None:
    """Stop a schedule from firing until it is resumed. What runs goes on."""
    _act(session, name, "pause")


def resume(session: Session, name: Name) -> None:
    """Let a paused schedule fire again, from now on. A block stays."""
    _act(session, name, "resume")


def unblock(session: Session, name: Name) -> None:
    """Let a blocked schedule fire again, from now on, once its payload is found right."""
    _act(session, name, "unblock")


def delete(
    session: Session,
    name: Name,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Delete a schedule. Its runs stay readable."""
    view = schedule_meant(session.client, name)
    if not (yes or session.json):
        typer.confirm(f"Delete {view.definition.name} ({view.schedule_id})?", abort=True, err=True)
    session.client.delete(f"/schedules/{view.schedule_id}")
    answer = {"schedule_id": view.schedule_id, "name": view.definition.name, "deleted": True}
    session.show(answer, lambda: Text(f"{view.definition.name} is deleted."))


def _act(session: Session, name: str, act: str) -> None:
    view = _post(session, schedule_meant(session.client, name).schedule_id, act)
    session.show(view.model_dump(mode="json"), lambda: tables.schedules([view], datetime.now(UTC)))


def _post(session: Session, schedule_id: str, act: str) -> ScheduleView:
    return ScheduleView.model_validate(session.client.post(f"/schedules/{schedule_id}/{act}"))
