"""How one run is printed from end to end: occurrence, folder, logs, steps, cost, scores, reviews."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from cli.moments import local, span, utc
from cli.tables import facts, state, took
from domain.run import Run

SHORT = 120
"""Characters of what a score says beside its value."""


def chain_of(found: dict[str, Any]) -> RenderableType:
    """Each link on a line of its own, and a dash where there is nothing."""
    return facts(_links(found))


def _links(found: dict[str, Any]) -> Iterable[tuple[str, RenderableType | None]]:
    run = Run.model_validate(found["run"])
    yield "run", Text(run.run_id, "bold")
    yield from _why(run)
    yield "state", Text.assemble(state(run), f"  {took(run)}")
    yield "folder", _folder(run, found["run_folder"])
    yield "execution", run.execution_id or "-"
    yield from _each("logs", _aligned((log["path"], f"{log['bytes']} bytes") for log in found["logs"]))
    yield from _each("steps", _aligned(_step(step) for step in found["steps"]))
    yield from _each("cost", (f"{amount} {currency}" for currency, amount in found["cost_totals"].items()))
    yield from _each("scores", _aligned(_score(score) for score in found["scores"]))
    yield from _each("reviews", (_review(Run.model_validate(review)) for review in found["reviews"]))
    if found["quarantined"]:
        many = f"{found['quarantined']} documents, which 'almanac evidence {run.run_id}' names"
        yield "set apart", Text(many, "bold red")


def _why(run: Run) -> Iterator[tuple[str, RenderableType]]:
    if run.schedule_id:
        yield "schedule", f"{run.schedule_name} ({run.schedule_id}, revision {run.schedule_revision})"
    at = run.scheduled_for or run.reference_time
    when = f"{local(at, run.reference_zone)}  {utc(at)}"
    yield "occurrence" if run.scheduled_for else "asked for", f"{when}  {run.origin.value}"
    frozen = run.prepared or {}
    if "version" in frozen:
        yield "runs", f"{run.target}, version {frozen['version']}"
    if "evidence_run_id" in frozen:
        yield "reviewed", str(frozen["evidence_run_id"])


def _folder(run: Run, now_in: str | None) -> str:
    if run.files_expired_at is not None:
        return f"{run.run_folder}, whose files made room for newer ones on {utc(run.files_expired_at)}"
    if now_in is None or now_in == run.run_folder:
        return run.run_folder or "-"
    if run.run_folder is None:
        return f"none; what it wrote is in reviews/{now_in}"
    return f"{now_in} (it had the slot {run.run_folder})"


def _each(name: str, lines: Iterable[Text | str]) -> Iterator[tuple[str, Text]]:
    """The name once, then each line below the first; a dash where there is none."""
    for number, line in enumerate(list(lines) or ["-"]):
        yield (name if number == 0 else ""), Text(line) if isinstance(line, str) else line


def _aligned(pairs: Iterable[tuple[str, str]]) -> list[str]:
    known = list(pairs)
    width = max((len(first) for first, _ in known), default=0)
    return [f"{first:<{width}}  {second}" for first, second in known]


def _step(step: dict[str, Any]) -> tuple[str, str]:
    lasted = ""
    if step["started_at"] and step["completed_at"]:
        began, ended = (datetime.fromisoformat(step[name]) for name in ("started_at", "completed_at"))
        lasted = f"  {span(ended - began)}"
    return step["step_id"] or step["path"], f"{step['status'] or '-'}{lasted}"


def _score(score: dict[str, Any]) -> tuple[str, str]:
    body = score["body"]
    values = body.get("values", body) if isinstance(body, dict) else {"": body}
    said = "  ".join(f"{name} {value}".strip() for name, value in values.items())
    return score["step_id"] or score["path"], said if len(said) <= SHORT else f"{said[: SHORT - 1]}…"


def _review(run: Run) -> Text:
    return Text.assemble(f"{run.run_id}  ", state(run), f"  {utc(run.changed_at)}")
