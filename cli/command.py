"""What every command that talks to a server shares: how it finds it, how it prints, and how it fails.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused, or the run it waited for did not succeed |
| 2 | the command line is wrong, or names no server |
| 3 | the server, or something it needs, does not answer |
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer
from pydantic import ValidationError
from rich.console import Console, RenderableType

from cli.client import Client, Refused, Unreachable
from cli.connection import Unconfigured, find

P = ParamSpec("P")

REFUSED = 1
USAGE = 2
UNREACHABLE = 3

PIPED_WIDTH = 200

Url = Annotated[str | None, typer.Option("--url", help="The server's address.", rich_help_panel="Server")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="Its token's file.", rich_help_panel="Server")]
Workspace = Annotated[
    str, typer.Option("--workspace", "-w", envvar="ALMANAC_WORKSPACE", help="The workspace.", rich_help_panel="Server")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@dataclass(frozen=True)
class Session:
    """One command's connection and its way to say things."""

    client: Client
    json: bool

    def show(self, body: object, render: Callable[[], RenderableType]) -> None:
        """Prints an answer: as JSON where that is asked for, else as `render` draws it."""
        if self.json:
            typer.echo(json.dumps(body, ensure_ascii=False, indent=2))
        else:
            console().print(render())


def console() -> Console:
    """For people: as wide as the terminal, and wide enough not to break lines where there is none."""
    stdout = Console(highlight=False)
    return stdout if stdout.is_terminal else Console(highlight=False, width=max(stdout.width, PIPED_WIDTH))


def complain(message: str) -> None:
    """One line to stderr."""
    print(" ".join(message.split()), file=sys.stderr)


def complain_of(as_json: bool, code: str, line: str) -> None:
    """The same for what went wrong before or beyond the server, which has a code of its own in JSON."""
    complain(json.dumps({"code": code, "detail": line}, ensure_ascii=False) if as_json else line)


def command(app: typer.Typer, name: str) -> Callable[[Callable[Concatenate[Session, P], None]], None]:
    """Registers a function as a command: it is given a Session, and its command line gains the shared options."""

    def register(body: Callable[Concatenate[Session, P], None]) -> None:
        shared = list(inspect.signature(_options, eval_str=True).parameters.values())
        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]

        def run(**given: Any) -> None:
            options = {parameter.name: given.pop(parameter.name) for parameter in shared}
            _guarded(lambda session: body(session, **given), **options)  # type: ignore[call-arg]

        signature = inspect.Signature([*own, *shared])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
        run.__doc__ = body.__doc__
        app.command(name)(run)

    return register


def explain(problem: dict[str, Any]) -> str:
    """A problem as one line: what, where, and what to do. Where a text has to be accepted, the text."""
    parts = [str(problem["detail"])]
    if problem.get("text"):
        parts.append(f"“{problem['text']}”")
    if problem.get("field"):
        parts.append(f"[{problem['field']}]")
    if problem.get("hint"):
        parts.append(str(problem["hint"]))
    return f"{' '.join(parts)} ({problem['code']})"


def _options(
    *, url: Url = None, token_file: TokenFile = None, workspace: Workspace = "default", as_json: Json = False
) -> None:
    """The shared options, as a signature."""


def _guarded(
    body: Callable[[Session], None], *, url: str | None, token_file: Path | None, workspace: str, as_json: bool
) -> None:
    try:
        connection = find(url, token_file, os.environ, Path.cwd())
        with Client(connection, workspace) as client:
            body(Session(client, as_json))
    except Unconfigured as error:
        complain_of(as_json, "cli.unconfigured", str(error))
        raise typer.Exit(USAGE) from error
    except Unreachable as error:
        complain_of(as_json, "cli.unreachable", str(error))
        raise typer.Exit(UNREACHABLE) from error
    except ValidationError as error:
        # Whatever is read from a file has been refused by name before.
        strange = "What the server answered makes no sense here: it is no Almanac, or of another version."
        complain_of(as_json, "cli.answer_strange", strange)
        raise typer.Exit(UNREACHABLE) from error
    except Refused as error:
        complain(json.dumps(error.problem, ensure_ascii=False) if as_json else explain(error.problem))
        raise typer.Exit(UNREACHABLE if error.is_outage else REFUSED) from error
