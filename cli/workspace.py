"""`almanac workspace`: what a workspace is set to, and setting it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from cli.command import Session
from domain.workspace import Posture, Workspace


def workspace(
    session: Session,
    *,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="An inactive one fires nothing and starts nothing.")
    ] = None,
    posture: Annotated[
        Posture | None, typer.Option(help="In development a pipeline's current pointer may be at its draft.")
    ] = None,
) -> None:
    """Show a workspace, or set what it is; one that is not there is made by setting something."""
    change: dict[str, Any] = {"active": active, "posture": posture}
    asked = {name: value for name, value in change.items() if value is not None}
    found = session.client.put("", asked) if asked else session.client.get("")
    session.show(found, lambda: _shown(Workspace.model_validate(found)))


def _shown(found: Workspace) -> RenderableType:
    state = ("active", "green") if found.active else ("inactive", "yellow")
    return Text.assemble((found.name, "bold"), "  ", state, "  ", found.posture)
