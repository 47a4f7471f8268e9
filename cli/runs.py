"""Commands about runs: see them, read their trails, and ask for one."""

from __future__ import annotations

import json
import secrets
import time
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from cli import tables
from cli.command import REFUSED, Session, console
from cli.find import run_meant, schedule_meant
from cli.moments import local
from domain.run import FINAL_STATES, Origin, Run, RunState, TrailRow

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
POLL_SECONDS = 0.5


def runs(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[SCHEDULE]", help="Only this schedule's: name or id.")] = None,
    *,
    state: Annotated[list[RunState] | None, typer.Option(help="Only in this state; may be repeated.")] = None,
    origin: Annotated[Origin | None, typer.Option(help="Only of this origin.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many, the newest first.")] = 50,
) -> None:
    """List runs, the newest first."""
    schedule_id = schedule_meant(session.client, name).schedule_id if name else None
    found = list(session.client.pages("/runs", limit, schedule_id=schedule_id, state=state or None, origin=origin))
    session.show(found, lambda: tables.runs([Run.model_validate(item) for item in found], datetime.now(UTC)))


def trail(session: Session, run_id: RunId) -> None:
    """Show a run and everything that happened to it, in order."""
    run = _run(session, run_id)
    rows = _trail(session, run_id)
    session.show(
        {"run": run.model_dump(mode="json"), "trail": [row.model_dump(mode="json") for row in rows]},
        lambda: tables.run(run, datetime.now(UTC)),
    )
    if not session.json:
        console().print(Text(), tables.trail(rows, run.reference_zone))


def run_now(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name or its id.")],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; fail unless it succeeds.")] = False,
    key: Annotated[str | None, typer.Option(help="Repeating a request with the same key is the same run.")] = None,
) -> None:
    """Run a schedule once, now. Allowed while it is paused, refused while it is blocked or running."""
    schedule_id = schedule_meant(session.client, name).schedule_id
    accepted = session.client.post(f"/schedules/{schedule_id}/run-now", idempotency_key=key or secrets.token_hex(16))
    run = Run.model_validate(accepted)
    if wait:
        run = followed(session, run)
    session.show(run.model_dump(mode="json"), lambda: tables.run(run, datetime.now(UTC)))
    if wait and run.state is not RunState.SUCCEEDED:
        raise typer.Exit(REFUSED)


def result(session: Session, run_id: RunId) -> None:
    """Print what a run returned, for as long as it is kept: an hour at most after its end."""
    found = session.client.get(f"/runs/{run_meant(run_id)}/result")
    content = found["result"]
    session.show(found, lambda: Text(content if isinstance(content, str) else json.dumps(content, indent=2)))


def cancel(
    session: Session,
    run_id: RunId,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
) -> None:
    """End a run: what runs is stopped, what waits is dropped."""
    run = Run.model_validate(session.client.post(f"/runs/{run_meant(run_id)}/cancel"))
    if wait:
        run = followed(session, run)
    session.show(run.model_dump(mode="json"), lambda: tables.run(run, datetime.now(UTC)))


def followed(session: Session, run: Run) -> Run:
    """Waits for the run's end and tells each new row of its trail as it comes."""
    told = 0
    with console().status(f"{run.run_id} {run.state.value}") as status:
        while True:
            # The run is read first: whatever made it final is then on the trail that is read after.
            run = _run(session, run.run_id)
            fresh = [row for row in _trail(session, run.run_id) if row.seq > told]
            for row in fresh:
                told = row.seq
                if not session.json:
                    status.console.print(_step(row, run.reference_zone))
            if run.state in FINAL_STATES:
                return run
            status.update(f"{run.run_id} {run.state.value}")
            time.sleep(POLL_SECONDS)


def _step(row: TrailRow, zone_id: str) -> Text:
    return Text.assemble((f"{local(row.at, zone_id)}  ", "bright_black"), tables.state(row), f"  {row.message or ''}")


def _run(session: Session, run_id: str) -> Run:
    return Run.model_validate(session.client.get(f"/runs/{run_meant(run_id)}"))


def _trail(session: Session, run_id: str) -> list[TrailRow]:
    return [TrailRow.model_validate(row) for row in session.client.get(f"/runs/{run_meant(run_id)}/trail")["items"]]
