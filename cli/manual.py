"""`almanac run`: a pipeline run by hand, without a schedule."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli import tables
from cli.client import segment
from cli.command import REFUSED, Session
from cli.runs import followed
from domain.run import Run, RunState


def run(
    session: Session,
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="Its name.")],
    *,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="A parameter's value; NAME:=VALUE for a number, true or false."),
    ] = None,
    bind: Annotated[
        list[str] | None, typer.Option(metavar="NAME=KEYWORD", help="A DATE as of the request: TODAY or YESTERDAY.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="The zone of TODAY and YESTERDAY.")] = "UTC",
    group: Annotated[list[str] | None, typer.Option(help="Only this group; may be repeated.")] = None,
    step: Annotated[str | None, typer.Option(help="Only this step.")] = None,
    timeout: Annotated[
        int | None, typer.Option(min=1, help="Seconds after which it is stopped; an hour unless set.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; fail unless it succeeds.")] = False,
    key: Annotated[str | None, typer.Option(help="Repeating a request with the same key is the same run.")] = None,
) -> None:
    """Run a pipeline's current version by hand, without a schedule. It waits for its turn like every other run."""
    asked: dict[str, Any] = {
        "parameters": dict(_parameter(one) for one in param or ()),
        "parameter_bindings": {name: {"source": "keyword", "name": text} for name, text in map(_pair, bind or ())},
        "timezone": timezone,
        "groups": group or None,
        "step": step,
        "execution_timeout_seconds": timeout,
    }
    body = {name: value for name, value in asked.items() if value}
    accepted = session.client.post(
        f"/pipelines/{segment(pipeline)}/runs", body, idempotency_key=key or secrets.token_hex(16)
    )
    started = Run.model_validate(accepted)
    ended = followed(session, started) if wait else started
    session.show(ended.model_dump(mode="json"), lambda: tables.run(ended, datetime.now(UTC)))
    if wait and ended.state is not RunState.SUCCEEDED:
        raise typer.Exit(REFUSED)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE.")
    return name, value


def _parameter(text: str) -> tuple[str, Any]:
    """Text as it is, so that `007` and `true` stay what they are; after `:=` what JSON reads."""
    name, value = _pair(text)
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], json.loads(value)
    except ValueError:
        raise typer.BadParameter(
            f"'{value}' is no number, true or false; write {name[:-1]}={value} for text."
        ) from None
