"""`almanac up`: all of Almanac on this machine, in the foreground."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console

from domain.errors import AlmanacError
from embedded.report import Board, Endpoints, JsonLines, Report


def up(
    data: Annotated[Path, typer.Option(envvar="ALMANAC_DATA", help="Folder for everything that lasts.")] = Path(
        ".almanac"
    ),
    temporal_port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: 7233, or a free one.")] = None,
    ui_port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: 8233, or a free one.")] = None,
    api_port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: 8400, or a free one.")] = None,
    apply: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Apply this folder's pipelines and schedules once it is up.")
    ] = None,
    run_now: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run this schedule once it is up, and wait for its end.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line; what the other commands print goes to stderr.")
    ] = False,
) -> None:
    """Start Temporal, PostgreSQL, worker and API here; Ctrl-C stops them in order and keeps the data."""
    # Loading the stack takes longer than all that the other commands do.
    from embedded import stack
    from embedded.ports import Asked

    console = Console(highlight=False)
    report: Report = JsonLines(console) if as_json else Board(console)
    commands = [["apply", str(apply)]] if apply else []
    commands += [["run-now", run_now, "--wait"]] if run_now else []

    async def on_ready(endpoints: Endpoints) -> None:
        for command in commands:
            report.note(f"almanac {' '.join(command)}")
            code = await _run(command, endpoints, sys.stderr if as_json else sys.stdout)
            if code != 0:
                report.note(f"almanac {command[0]} failed (exit code {code})")
                break

    try:
        asyncio.run(stack.up(data, report=report, asked=Asked(temporal_port, ui_port, api_port), on_ready=on_ready))
    except AlmanacError as error:
        hint = f"; {error.hint}" if error.hint else ""
        typer.echo(f"almanac up: {error.message}{hint}", err=True)
        raise typer.Exit(1) from error


async def _run(command: list[str], endpoints: Endpoints, output: TextIO) -> int:
    """The exit code of one command of this program against the stack just started, ended with it."""
    settings = {"ALMANAC_URL": endpoints.api, "ALMANAC_TOKEN_FILE": endpoints.token_file}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "cli", *command), env={**os.environ, **settings}, stdout=output
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
