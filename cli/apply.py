"""`almanac apply`: makes the server have the pipelines and schedules that files describe.

Nothing is changed while any document has a mistake that can be seen without the server. After that each document
stands alone: one that the server refuses stops no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.client import Client, Refused, segment
from cli.command import REFUSED, Session, complain, console, explain
from cli.find import schedule_named
from cli.manifests import AFTER, Manifest, Mistake, Place, read_all
from domain import secrets
from domain.errors import AlmanacError
from domain.names import name_key
from domain.pipeline import PipelineDefinition, PipelineView
from domain.schedule import ScheduleDefinition
from domain.values import Value

Paths = Annotated[list[Path], typer.Argument(help="YAML files, or folders of them.", exists=True)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")]


class Result(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


STYLES = {Result.CREATED: "green", Result.CHANGED: "yellow", Result.UNCHANGED: "bright_black", Result.REFUSED: "red"}


@dataclass(frozen=True)
class Change:
    """What one document came to. `fields` are those that differ: `{name: [before, after]}`."""

    manifest: Manifest
    result: Result
    fields: dict[str, list[Any]]
    problem: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        place = self.manifest.place
        return {
            "result": self.result.value,
            "kind": self.manifest.kind,
            "name": self.manifest.definition.name,
            "file": str(place.file),
            "document": place.document,
            "line": place.line,
            "fields": self.fields,
            "problem": self.problem,
            "warnings": list(self.warnings),
        }


def apply(session: Session, paths: Paths, *, dry_run: DryRun = False) -> None:
    """Create or change pipelines and schedules from files; what is already so is left alone.

    A document has a `kind` (pipeline or schedule) beside the fields of its definition. Pipelines are saved and
    released, and come first; schedules are matched by name, and parents that `after` names come before those that
    wait for them.
    """
    manifests, mistakes = read_all(paths)
    if mistakes:
        _report_mistakes(session, mistakes)
        raise typer.Exit(REFUSED)
    ordered = in_order(manifests)
    changes = [_told(session, _applied(session.client, manifest, dry_run), dry_run) for manifest in ordered]
    if session.json:
        session.show([change.as_json() for change in changes], Text)
    elif not changes:
        complain("There is nothing to apply there.")
    if any(change.result is Result.REFUSED for change in changes):
        raise typer.Exit(REFUSED)


def in_order(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Pipelines before schedules, and a schedule after those of its parents that are there too. What is left of a
    circle goes last, for the server to refuse."""
    ordered = [manifest for manifest in manifests if manifest.kind == "pipeline"]
    left = [manifest for manifest in manifests if manifest.kind != "pipeline"]
    while left:
        names = {name_key(manifest.definition.name) for manifest in left}
        ready = [manifest for manifest in left if names.isdisjoint(map(name_key, manifest.after))]
        ordered += ready or left
        left = [manifest for manifest in left if manifest not in ready] if ready else []
    return ordered


def differences(before: Value, after: Value) -> dict[str, list[Any]]:
    """The fields in which two definitions differ, each as `[before, after]`."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: [old.get(name), new[name]] for name in new if old.get(name) != new[name]}


def _applied(client: Client, manifest: Manifest, dry_run: bool) -> Change:
    warnings: tuple[str, ...] = ()
    try:
        if isinstance(manifest.definition, PipelineDefinition):
            result, fields = _pipeline(client, manifest.definition, dry_run)
        else:
            definition = _with_parents(client, manifest, manifest.definition, dry_run)
            result, fields, warnings = _schedule(client, definition, dry_run)
    except Refused as refusal:
        if refusal.is_outage:
            raise
        return Change(manifest, Result.REFUSED, {}, refusal.problem)
    return Change(manifest, result, fields, warnings=warnings)


def _with_parents(
    client: Client, manifest: Manifest, definition: ScheduleDefinition, dry_run: bool
) -> ScheduleDefinition:
    """The definition with the ids of the parents that it names. In a dry run a parent may yet have none."""
    parents = []
    for index, name in enumerate(manifest.after):
        found = schedule_named(client, name)
        if found is None and not dry_run:
            raise Refused(
                {
                    "status": 400,
                    "code": "apply.parent_unknown",
                    "detail": f"There is no schedule '{name}' to wait for.",
                    "field": f"{AFTER}.{index}",
                }
            )
        parents.append(found.schedule_id if found is not None else name)
    return definition.model_copy(update={"after_schedule_ids": tuple(parents)}) if parents else definition


def _pipeline(client: Client, definition: PipelineDefinition, dry_run: bool) -> tuple[Result, dict[str, list[Any]]]:
    path = f"/pipelines/{segment(definition.name)}"
    before = _pipeline_before(client, path)
    fields = differences(before.draft, definition) if before else {}
    if dry_run:
        same = before is not None and before.current_version is not None and not fields
        return _result(before is None, not same), fields
    saved = client.put(path, definition.model_dump(mode="json"))
    released = client.post(f"{path}/release", {"expected_sha256": saved["draft_sha256"]})
    return _result(before is None, before is None or before.current_version != released["current_version"]), fields


def _pipeline_before(client: Client, path: str) -> PipelineView | None:
    try:
        return PipelineView.model_validate(client.get(path))
    except Refused as refusal:
        if refusal.code != "pipeline.not_found":
            raise
        return None


def _schedule(
    client: Client, definition: ScheduleDefinition, dry_run: bool
) -> tuple[Result, dict[str, list[Any]], tuple[str, ...]]:
    body = definition.model_dump(mode="json")
    before = schedule_named(client, definition.name)
    if before is None:
        saved = {} if dry_run else client.post("/schedules", body)
        return Result.CREATED, {}, tuple(saved.get("warnings", ()))
    alike = secrets.masked_like(definition.payload, before.definition.payload)
    fields = differences(before.definition, definition.model_copy(update={"payload": alike}))
    # Whether a secret is another one only the server can tell.
    if dry_run or not (fields or alike != definition.payload):
        return _result(False, bool(fields)), fields, ()
    saved = client.put(f"/schedules/{before.schedule_id}", {**body, "revision": before.revision})
    fields = differences(before.definition, ScheduleDefinition.model_validate(saved["definition"]))
    return _result(False, saved["revision"] != before.revision), fields, tuple(saved.get("warnings", ()))


def _result(new: bool, differs: bool) -> Result:
    if new:
        return Result.CREATED
    return Result.CHANGED if differs else Result.UNCHANGED


def _told(session: Session, change: Change, dry_run: bool) -> Change:
    """Says at once what one document came to."""
    if change.problem is not None:
        place = change.manifest.place_of(change.problem.get("field"))
        told = f"{place}: {change.manifest.kind} '{change.manifest.definition.name}': {explain(change.problem)}"
        complain(_problem_line(place, change.problem) if session.json else told)
    if not session.json:
        for line in _lines(change, dry_run):
            console().print(line, soft_wrap=True)
    return change


def _lines(change: Change, dry_run: bool) -> Iterator[Text]:
    words = (
        f"would be {change.result.value}" if dry_run and change.result is not Result.REFUSED else change.result.value
    )
    width = 19 if dry_run else 10
    yield Text.assemble(
        (f"{words:<{width}}", STYLES[change.result]), f"{change.manifest.kind:<9} {change.manifest.definition.name}"
    )
    for name, (before, after) in change.fields.items():
        yield Text.assemble(f"{'':{width}} {name}: ", (_short(before), "red"), " → ", (_short(after), "green"))

    for warning in change.warnings:
        yield Text.assemble(f"{'':{width}} ", (f"! {warning}", "yellow"))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _report_mistakes(session: Session, mistakes: list[Mistake]) -> None:
    for mistake in mistakes:
        problem = _problem(mistake.refusal)
        line = f"{mistake.place}: {explain(problem)}"
        complain(_problem_line(mistake.place, problem) if session.json else line)
    if not session.json:
        complain(f"{len(mistakes)} of the documents can't be right, so nothing was changed.")


def _problem(refusal: AlmanacError) -> dict[str, Any]:
    """A refusal found here, in the server's form."""
    said = {"field": refusal.field, "hint": refusal.hint}
    return {"status": refusal.status, "code": refusal.code, "detail": refusal.message} | {
        key: value for key, value in said.items() if value is not None
    }


def _problem_line(place: Place, problem: dict[str, Any]) -> str:
    where = {"file": str(place.file), "document": place.document, "line": place.line}
    return json.dumps(problem | where, ensure_ascii=False)
