"""Commands about pipelines: which there are, which versions they have, which of them runs, and their end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from cli.client import segment
from cli.command import Session, command, complain
from cli.moments import relative
from cli.tables import Rows
from domain.pipeline import DRAFT, PipelineView, VersionName, VersionRow

pipelines = typer.Typer(
    name="pipelines", help="Pipelines, their versions, and which of them runs.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="PIPELINE", help="Its name.")]
LIST_LIMIT = 1_000


def list_pipelines(
    session: Session, *, limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = LIST_LIMIT
) -> None:
    """List pipelines and which version of each is current."""
    found = list(session.client.pages("/pipelines", limit))
    views = [PipelineView.model_validate(item) for item in found]
    session.show(found, lambda: _pipelines(views, datetime.now(UTC)))


def versions(session: Session, name: Name) -> None:
    """List the released versions of a pipeline."""
    found = session.client.get(f"/pipelines/{segment(name)}/versions")["items"]
    rows = [VersionRow.model_validate(item) for item in found]
    session.show(found, lambda: _versions(rows, datetime.now(UTC)))


def point(
    session: Session,
    name: Name,
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="A released version's number; 'draft' where a workspace develops.")
    ],
) -> None:
    """Move a pipeline's current pointer. Its schedules run that version from their next run on."""
    view = session.client.post(f"/pipelines/{segment(name)}/current", {"version": _version(version)})
    session.show(view, lambda: Text.assemble(f"{name} runs ", (_said(view["current_version"]), "bold"), " now."))


def discard(
    session: Session, name: Name, *, yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False
) -> None:
    """Discard a pipeline, after saying which schedules run it. What ran of it stays."""
    running = list(session.client.pages("/schedules", LIST_LIMIT, target=f"pipeline:{name}"))
    named = ", ".join(sorted(view["definition"]["name"] for view in running))
    if running:
        complain(f"These run it, and will block at their next run: {named}.")
    if not (yes or session.json):
        typer.confirm(f"Discard the pipeline {name}?", abort=True, err=True)
    session.client.delete(f"/pipelines/{segment(name)}")
    body = {"name": name, "discarded": True, "schedules": [view["schedule_id"] for view in running]}
    session.show(body, lambda: Text(f"{name} is discarded."))


for title, body in {"list": list_pipelines, "versions": versions, "point": point, "discard": discard}.items():
    command(pipelines, title)(body)  # type: ignore[arg-type]  # each has options of its own


def _version(text: str) -> VersionName:
    if text == DRAFT:
        return DRAFT
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is neither a version's number nor 'draft'.") from None


def _said(version: VersionName | None) -> str:
    return "none" if version is None else version if version == DRAFT else f"version {version}"


def _pipelines(views: Sequence[PipelineView], now: datetime) -> RenderableType:
    if not views:
        return Text("No pipelines.")
    table = Rows({"name": 0, "current": 0, "released": 60, "changed": 80, "by": 95})
    for view in views:
        style = "yellow" if view.current_version in (None, DRAFT) else "green"
        current = Text(_said(view.current_version), style=style)
        table.add(view.name, current, str(len(view.released_versions)), relative(view.changed_at, now), view.changed_by)
    return table


def _versions(rows: Sequence[VersionRow], now: datetime) -> RenderableType:
    if not rows:
        return Text("No released versions.")
    table = Rows({"version": 0, "current": 0, "released": 0, "by": 60, "sha256": 120})
    for row in rows:
        current = Text("current", style="green") if row.is_current else Text("")
        table.add(str(row.version), current, relative(row.released_at, now), row.released_by, row.body_sha256)
    return table
