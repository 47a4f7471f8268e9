"""Commands about schedules: see them, see what a pattern means, and act on them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from cli import tables
from cli.command import Session, complain
from cli.find import schedule_meant
from cli.moments import utc
from domain.schedule import Condition, Moved, ScheduleView

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


def replan(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[SCHEDULE]", help="Its name or id; all without.")] = None,
) -> None:
    """Compute what is due anew, after a release of the zone data. Nothing is missed and nothing repeated."""
    if name is None:
        before = [ScheduleView.model_validate(item) for item in session.client.pages("/schedules", 1_000_000)]
    else:
        before = [schedule_meant(session.client, name)]
    done = [session.client.post(f"/schedules/{old.schedule_id}/replan") for old in before]
    replanned = [
        (old, ScheduleView.model_validate(new["schedule"]), new["moved"]) for old, new in zip(before, done, strict=True)
    ]
    session.show(
        [
            {
                "schedule_id": new.schedule_id,
                "name": new.definition.name,
                "before": {"next_due_at": _iso(old.next_due_at), "tzdata_version": old.tzdata_version},
                "after": {"next_due_at": _iso(new.next_due_at), "tzdata_version": new.tzdata_version},
                "moved": moved,
            }
            for old, new, moved in replanned
        ],
        lambda: Text("\n".join(_replanned(*one) for one in replanned) or "No schedules."),
    )


def _act(session: Session, name: str, act: str) -> None:
    view = _post(session, schedule_meant(session.client, name).schedule_id, act)
    session.show(view.model_dump(mode="json"), lambda: tables.schedules([view], datetime.now(UTC)))


def _post(session: Session, schedule_id: str, act: str) -> ScheduleView:
    return ScheduleView.model_validate(session.client.post(f"/schedules/{schedule_id}/{act}"))


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _replanned(old: ScheduleView, new: ScheduleView, moved: list[dict[str, Any]]) -> str:
    due = " → ".join(utc(at) if at else "-" for at in dict.fromkeys((old.next_due_at, new.next_due_at)))
    data = " → ".join(dict.fromkeys((old.tzdata_version or "-", new.tzdata_version or "-")))
    lines = [f"{new.definition.name}  due {due}  (zone data {data})"]
    lines += [_moved(Moved.model_validate(one), new.definition.timezone) for one in moved]
    return "\n".join(lines)


def _moved(one: Moved, zone: str) -> str:
    """A local time, and the instant at which it was and is due."""
    now = utc(one.after) if one.after else "not due any more"
    return f"  {one.nominal:%Y-%m-%d %H:%M} {zone}: {utc(one.before)} → {now}"
