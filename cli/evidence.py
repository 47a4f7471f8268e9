"""Commands about what runs left: their files, their evidence, and the folders of a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.chain import chain_of
from cli.client import segment
from cli.command import Session
from cli.moments import relative, utc
from cli.runs import RunId
from cli.tables import Rows


def files(
    session: Session,
    run_id: RunId,
    path: Annotated[str | None, typer.Argument(metavar="[FILE]", help="Write this file to stdout, as it is.")] = None,
) -> None:
    """List the files that a run left, or write one of them to stdout."""
    if path is not None:
        for piece in session.client.download(f"/runs/{segment(run_id)}/files/{segment(path)}"):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    found = session.client.get(f"/runs/{segment(run_id)}/files")
    session.show(found, lambda: _files(found))


def evidence(
    session: Session,
    run_id: RunId,
    *,
    chain: Annotated[
        bool, typer.Option("--chain", help="From end to end instead: occurrence, folder, logs, cost, scores, reviews.")
    ] = False,
    pipeline: Annotated[
        str | None, typer.Option(help="RUN is a folder of this pipeline, from before runs had ids.")
    ] = None,
) -> None:
    """Show the documents that a run and its evaluation wrote, in order; what contradicts the run is set apart."""
    if chain:
        whole = session.client.get(f"/runs/{segment(run_id)}/chain")
        session.show(whole, lambda: chain_of(whole))
        return
    runs = f"/pipelines/{segment(pipeline)}/runs" if pipeline else "/runs"
    found = session.client.get(f"{runs}/{segment(run_id)}/evidence")
    session.show(found, lambda: _evidence(found))


def folders(
    session: Session,
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="Its name.")],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="At most this many, newest first.")] = 50,
) -> None:
    """List a pipeline's run folders, newest first, and say which run is current and which the latest."""
    found = session.client.get(f"/pipelines/{segment(pipeline)}/runs", limit=limit)
    session.show(found, lambda: _folders(found, datetime.now(UTC)))


def _files(found: dict[str, Any]) -> RenderableType:
    table = Rows({"file": 0, "bytes": 0, "changed (UTC)": 80})
    for file in found["items"]:
        size = str(file["bytes"]) if file["readable"] else "not a file"
        table.add(Text(file["path"]), size, utc(datetime.fromisoformat(file["modified_at"])))
    more = [] if found["complete"] else [Text("There are more files than are listed.", "yellow")]
    return Group(table, *more)


def _evidence(found: dict[str, Any]) -> RenderableType:
    run, evaluation = found["run"], found["evaluation"] or {"documents": [], "quarantined": []}
    parts: list[RenderableType] = [_documents("document", run["documents"])]
    if evaluation["documents"]:
        parts += [Text(), _documents("evaluation", evaluation["documents"])]
    for name in ("costs", "scores"):
        for execution_id, documents in found[name].items():
            total = found["cost_totals"][execution_id] if name == "costs" else {}
            said = "".join(f", {amount} {currency}" for currency, amount in total.items())
            parts += [Text(), Text(f"{name} of execution {execution_id}{said}", "bold")]
            parts += [Text(f"{document['path']}  {document['body']}") for document in documents]
    quarantined = run["quarantined"] + evaluation["quarantined"]
    if quarantined:
        parts += [Text(), Text("Set apart, because they are not this run's or can't be read:", "bold red")]
        parts += [Text(f"{document['path']}  {document['why']}") for document in quarantined]
    return Group(*parts)


def _documents(title: str, documents: Iterable[dict[str, Any]]) -> RenderableType:
    table = Rows({title: 0, "kind": 0, "step": 90, "status": 0, "written (UTC)": 80})
    for document in documents:
        at = document["created_at"]
        kind = document["kind"] or document["standing"]
        written = utc(datetime.fromisoformat(at)) if at else "-"
        table.add(Text(document["path"]), kind, document["step_id"] or "-", document["status"] or "-", written)
    return table


def _folders(found: dict[str, Any], now: datetime) -> RenderableType:
    table = Rows({"folder": 0, "kind": 0, "status": 0, "began": 0, "run": 90})
    for entry in found["items"]:
        status = "files expired" if entry["expired_at"] else entry["status"] or "-"
        began = relative(datetime.fromisoformat(entry["started_at"]), now) if entry["started_at"] else "-"
        table.add(entry["folder"], entry["kind"], status, began, entry["run_id"] or "-")
    chosen = [(name, found[name]) for name in ("current", "latest", "latest_succeeded") if found[name]]
    lines = [Text(f"{name.replace('_', ' ')}: {entry['run_id']} in {entry['folder']}") for name, entry in chosen]
    return Group(*lines, Text(), table)
