"""`almanac graph`: who waits for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import drawing
from cli.command import Session
from cli.find import schedule_meant
from domain.schedule import ScheduleView

MOST = 100_000


def graph(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="[SCHEDULE]", help="Only what is connected with this one: name or id.")
    ] = None,
    *,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the drawing to this file.", dir_okay=False)] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print it as a mermaid flowchart.")] = False,
) -> None:
    """Show which schedules wait for which."""
    around = schedule_meant(session.client, name).schedule_id if name else None
    views = [ScheduleView.model_validate(item) for item in session.client.pages("/schedules", MOST)]
    found = drawing.Graph.of(views, around)
    if svg is not None:
        svg.write_text(drawing.svg(found), encoding="utf-8")
    if mermaid and not session.json:
        typer.echo(drawing.mermaid(found), nl=False)
    elif svg is None or session.json:
        session.show(_body(found), lambda: drawing.tree(found))


def _body(found: drawing.Graph) -> dict[str, Any]:
    return {
        "schedules": [{"schedule_id": each, "name": view.definition.name} for each, view in found.views.items()],
        "arrows": [{"parent": parent, "dependent": each} for parent, each in found.arrows],
    }
