"""`almanac`: every part and every act from one command line."""

from __future__ import annotations

import asyncio
import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.exceptions import TyperException

from cli import apply, evidence, graph, hooks, logs, manual, pipelines, replan, runs, schedules, workspace
from cli.command import UNREACHABLE, USAGE, command, complain, complain_of
from cli.guide import guide
from cli.occurrences import occurrences
from cli.up import up
from domain.errors import AlmanacError

INTERRUPTED = 130

app = typer.Typer(
    name="almanac",
    help="A durable scheduler on Temporal.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.command("up")(up)
app.command("occurrences")(occurrences)
app.command("guide")(guide)

for name, body in {
    "apply": apply.apply,
    "list": schedules.list_schedules,
    "show": schedules.show,
    "preview": schedules.preview,
    "graph": graph.graph,
    "runs": runs.runs,
    "trail": runs.trail,
    "logs": logs.logs,
    "run-now": runs.run_now,
    "run": manual.run,
    "files": evidence.files,
    "evidence": evidence.evidence,
    "folders": evidence.folders,
    "result": runs.result,
    "cancel": runs.cancel,
    "pause": schedules.pause,
    "resume": schedules.resume,
    "unblock": schedules.unblock,
    "delete": schedules.delete,
    "replan": replan.replan,
    "workspace": workspace.workspace,
}.items():
    command(app, name)(body)  # type: ignore[arg-type]  # each has options of its own

app.add_typer(hooks.hooks)
app.add_typer(pipelines.pipelines)


@app.command()
def worker() -> None:
    """Run the worker: workflows, activities and executions. Its settings are ALMANAC_… variables."""
    runpy.run_module("worker", run_name="__main__", alter_sys=True)


@app.command()
def api() -> None:
    """Run the REST API. Its settings are ALMANAC_… variables."""
    runpy.run_module("api", run_name="__main__", alter_sys=True)


@app.command()
def migrate() -> None:
    """Bring the database at ALMANAC_DATABASE_URL to this version."""
    url = os.environ.get("ALMANAC_DATABASE_URL")
    if not url:
        complain("almanac migrate: ALMANAC_DATABASE_URL is not set.")
        raise typer.Exit(USAGE)
    # Loading the migrations takes longer than all that the other commands do.
    from readmodel.migrate import upgrade

    try:
        asyncio.run(upgrade(url))
    except AlmanacError as refusal:
        complain(f"almanac migrate: {refusal.message} ({refusal.code})")
        raise typer.Exit(UNREACHABLE) from refusal


def main(arguments: Sequence[str] | None = None) -> None:
    sys.exit(_exit_code(sys.argv[1:] if arguments is None else arguments))


def _exit_code(arguments: Sequence[str]) -> int:
    try:
        answer: Any = app(list(arguments), prog_name="almanac", standalone_mode=False)
    except TyperException as error:
        complain_of("--json" in arguments, "cli.usage", error.format_message())
        return error.exit_code
    except typer.Abort:
        complain("Nothing was done.")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence()
        return 0
    except OSError as error:
        _silence()
        complain(f"almanac: {error.strerror or error}.")
        return 1
    return answer if isinstance(answer, int) else 0


def _silence() -> None:
    """Who reads our output has left, or it has no room: nothing more may be written, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
