"""Commands about webhooks: who else may run a schedule, by a secret that is shown once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.client import segment
from cli.command import Session, command
from cli.find import schedule_meant
from cli.moments import relative, utc
from cli.tables import Rows

hooks = typer.Typer(name="hooks", help="Webhooks: a signed request runs a schedule.", no_args_is_help=True)

Schedule = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name or its id.")]
HookId = Annotated[str, typer.Argument(metavar="HOOK", help="The webhook's id.")]


def list_hooks(session: Session, schedule: Schedule) -> None:
    """List the webhooks of a schedule, without their secrets."""
    found = session.client.get(_path(session, schedule))["items"]
    session.show(found, lambda: _table(found, datetime.now(UTC)))


def create(session: Session, schedule: Schedule) -> None:
    """Make a webhook that runs the schedule. Its secret is shown this once."""
    _show_secret(session, session.client.post(_path(session, schedule)))


def rotate(session: Session, schedule: Schedule, hook_id: HookId) -> None:
    """Give a webhook a new secret, shown this once. The former one is good for another 24 hours."""
    _show_secret(session, session.client.post(f"{_path(session, schedule)}/{segment(hook_id)}/rotate"))


def delete(
    session: Session,
    schedule: Schedule,
    hook_id: HookId,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Delete a webhook. Its secrets are good no longer, at once."""
    path = f"{_path(session, schedule)}/{segment(hook_id)}"
    if not (yes or session.json):
        typer.confirm(f"Delete the webhook {hook_id}?", abort=True, err=True)
    session.client.delete(path)
    session.show({"hook_id": hook_id, "deleted": True}, lambda: Text(f"{hook_id} is deleted."))


for name, body in {"list": list_hooks, "create": create, "rotate": rotate, "delete": delete}.items():
    command(hooks, name)(body)  # type: ignore[arg-type]  # each has options of its own


def _path(session: Session, schedule: str) -> str:
    return f"/schedules/{schedule_meant(session.client, schedule).schedule_id}/hooks"


def _show_secret(session: Session, made: dict[str, Any]) -> None:
    url = session.client.url_of(made["path"])
    session.show({**made, "url": url}, lambda: _secret(made, url))


def _secret(made: dict[str, Any], url: str) -> RenderableType:
    until = made["former_until"]
    lines = [
        Text.assemble(("webhook  ", "bright_black"), made["hook_id"]),
        Text.assemble(("address  ", "bright_black"), url),
        Text.assemble(("secret   ", "bright_black"), (made["secret"], "bold")),
        Text("The secret is not shown again.", "yellow"),
    ]
    former = [Text(f"The former one is good until {utc(datetime.fromisoformat(until))}.")] if until else []
    return Group(*lines, *former)


def _table(found: Sequence[dict[str, Any]], now: datetime) -> RenderableType:
    if not found:
        return Text("No webhooks.")
    table = Rows({"webhook": 0, "made": 0, "by": 80, "secret since": 0, "former good until": 95})
    for hook in found:
        made = datetime.fromisoformat(hook["created_at"])
        since = datetime.fromisoformat(hook["rotated_at"]) if hook["rotated_at"] else made
        former = datetime.fromisoformat(hook["former_until"]) if hook["former_until"] else None
        until = utc(former) if former is not None and former > now else "-"
        table.add(hook["hook_id"], relative(made, now), hook["created_by"], relative(since, now), until)
    return table
