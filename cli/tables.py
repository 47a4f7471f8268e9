"""How schedules, runs and occurrences look on a terminal: aligned, coloured by state, local times beside UTC.

A narrow terminal shows fewer columns rather than cut ones, because ids and names are there to be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from cli.moments import local, relative, span, utc
from domain.run import ParentWait, Run, RunState, TrailRow, WaitStatus
from domain.schedule import Condition, RunSummary, ScheduleView

STATE_STYLES = {
    RunState.WAITING: "yellow",
    RunState.QUEUED: "yellow",
    RunState.STARTING: "cyan",
    RunState.RUNNING: "cyan",
    RunState.SUCCEEDED: "green",
    RunState.FAILED: "red",
    RunState.CANCELLED: "magenta",
    RunState.ABORTED: "magenta",
    RunState.UNKNOWN: "bold red",
    RunState.NOT_STARTED: "red",
    RunState.SKIPPED: "bright_black",
}

DRIVEN = "by parents"
"""In place of a pattern."""

DETAIL = "detail"
"""The one column that may go on in the next line."""

CONDITION_STYLES = {
    Condition.ACTIVE: "green",
    Condition.PAUSED: "yellow",
    Condition.BLOCKED: "bold red",
    Condition.DELETED: "bright_black",
}


@dataclass
class Rows:
    """A table that leaves out the columns the terminal has no room for.

    `columns` are the headers, each with the least width of the terminal from which it is shown.
    """

    columns: Mapping[str, int]
    rows: list[tuple[RenderableType, ...]] = field(default_factory=list)

    def add(self, *cells: RenderableType) -> None:
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = [index for index, least in enumerate(self.columns.values()) if least <= options.max_width]
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        headers = list(self.columns)
        for index in shown:
            table.add_column(headers[index], no_wrap=headers[index] != DETAIL)
        for row in self.rows:
            table.add_row(*(row[index] for index in shown))
        yield table


def schedules(views: Sequence[ScheduleView], now: datetime) -> RenderableType:
    if not views:
        return Text("No schedules.")
    table = Rows(
        {
            "name": 0,
            "condition": 0,
            "due": 0,
            "local time": 100,
            "UTC": 120,
            "last run": 0,
            "ended": 135,
            "cron": 150,
            "zone": 180,
            "id": 0,
        }
    )
    for view in views:
        due, last = view.next_due_at, view.last_run
        table.add(
            view.definition.name,
            condition(view.condition),
            relative(due, now) if due else "-",
            local(due, view.definition.timezone) if due else "-",
            utc(due) if due else "-",
            state(last) if last else "-",
            relative(last.at, now) if last else "-",
            view.definition.cron or DRIVEN,
            view.definition.timezone,
            view.schedule_id,
        )
    return table


def schedule(view: ScheduleView, now: datetime, warnings: Sequence[str] = ()) -> RenderableType:
    """One schedule: its condition, its policies, what it is doing, what comes next and what its author should know."""
    known = facts(_schedule_facts(view, now))
    upcoming = Rows({"next": 0, "": 0, "UTC": 0, "rule": 0})
    for occurrence in view.upcoming:
        upcoming.add(
            local(occurrence.at, view.definition.timezone),
            relative(occurrence.at, now),
            utc(occurrence.at),
            occurrence.kind,
        )
    shown: list[RenderableType] = [known]
    if view.upcoming:
        shown += [Text(), upcoming]
    return Group(*shown, *(Text(f"! {warning}", "yellow") for warning in warnings))


def runs(found: Sequence[Run], now: datetime) -> RenderableType:
    if not found:
        return Text("No runs.")
    table = Rows(
        {
            "run": 0,
            "schedule": 80,
            "state": 0,
            "changed": 95,
            "took": 105,
            "origin": 115,
            "scheduled for": 145,
            "UTC": 165,
        }
    )
    for run in found:
        due = run.scheduled_for
        table.add(
            run.run_id,
            run.schedule_name or run.target,
            _state_of_run(run),
            relative(run.changed_at, now),
            took(run),
            run.origin.value,
            local(due, run.reference_zone) if due else "-",
            utc(due) if due else "-",
        )
    return table


def run(found: Run, now: datetime) -> RenderableType:
    known = facts(_run_facts(found, now))
    return Group(known, Text(), parents(found, now)) if found.waits_for else known


def parents(found: Run, now: datetime) -> RenderableType:
    """Each parent whose occurrence the run waits for, or has waited for."""
    table = Rows({"waits for": 0, "occurrence (UTC)": 0, "is": 0, "since": 0, "run": 120})
    for parent in found.waits_for:
        table.add(
            parent.name or parent.schedule_id,
            utc(parent.occurrence) if parent.occurrence else "-",
            parent_state(parent),
            relative(parent.since, now),
            parent.run_id or "-",
        )
    return table


def parent_state(parent: ParentWait) -> Text:
    if parent.run_state is None:
        return Text(parent.status.value.replace("_", " "), "yellow")
    words = f"{parent.run_state.value} ({parent.reason})" if parent.reason else parent.run_state.value
    return Text(words, STATE_STYLES[parent.run_state])


def trail(rows: Sequence[TrailRow], zone_id: str) -> RenderableType:
    if not rows:
        return Text("The trail is empty.")
    table = Rows({"no.": 120, f"at ({zone_id})": 0, "UTC": 120, "what": 0, "state": 0, DETAIL: 0})
    for number, row in enumerate(rows, start=1):
        told = row.message or ", ".join(f"{key} {value}" for key, value in row.data.items())
        table.add(str(number), local(row.at, zone_id), utc(row.at), row.kind, state(row), told)
    return table


def preview(body: dict[str, Any], now: datetime) -> RenderableType:
    table = Rows({"local time": 0, "": 95, "UTC": 80, "meant for": 0, "rule": 0})
    for row in body["rows"]:
        at = datetime.fromisoformat(row["at"])
        nominal = ", ".join(str(time).replace("T", " ")[:16] for time in row["nominal"])
        style = "" if row["rule"] == "ordinary" else "yellow"
        table.add(local(at, body["zone"]), relative(at, now), utc(at), Text(nominal, style), Text(row["rule"], style))
    words = Text.assemble((body["words"], "bold"), f"  ({body['zone']}, zone data {body['tzdata_version']})")
    warnings = [Text(f"! {warning}", "yellow") for warning in body["warnings"]]
    return Group(words, table, *warnings)


def condition(value: Condition) -> Text:
    return Text(value.value, CONDITION_STYLES[value])


def state(of: Run | RunSummary | TrailRow) -> Text:
    """A state with its reason, in the state's colour."""
    words = f"{of.state.value} ({of.reason})" if of.reason else of.state.value
    return Text(words, STATE_STYLES[of.state])


def facts(named: Iterable[tuple[str, RenderableType | None]]) -> RenderableType:
    """One a line, the names in a column of their own. What is None is left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column()
    for name, value in named:
        if value is not None:
            table.add_row(name, value)
    return table


def _schedule_facts(view: ScheduleView, now: datetime) -> Iterable[tuple[str, RenderableType | None]]:
    definition = view.definition
    yield "name", Text(definition.name, "bold")
    yield "id", f"{view.schedule_id}, revision {view.revision}"
    yield "condition", condition(view.condition)
    if view.blocked:
        cause = f"{view.blocked.cause}, {relative(view.blocked.since, now)}"
        yield "blocked by", Text(cause, "bold red")
    yield "cron", f"{definition.cron or DRIVEN}  {definition.timezone}, zone data {view.tzdata_version or '-'}"
    if definition.parents:
        yield "after", f"{', '.join(definition.parents)} ({definition.after_terminal_status.value})"
    yield "runs", f"{view.target} by {definition.executor}"
    yield "missed", definition.missed_policy.value
    yield "collision", f"{definition.collision_policy.value}, priority {definition.priority}"
    for summary in view.open_runs:
        yield "open run", Text.assemble(summary.run_id, "  ", state(summary))
    if view.last_run:
        last = view.last_run
        yield "last run", Text.assemble(last.run_id, "  ", state(last), f"  {relative(last.at, now)}")
    if view.last_missed:
        missed = view.last_missed
        yield "last missed", f"{missed.count}, {utc(missed.first)} to {utc(missed.last)}"
    yield "changed", f"{relative(view.changed_at, now)} by {view.changed_by}"
    yield "notes", definition.notes or None


def _run_facts(found: Run, now: datetime) -> Iterable[tuple[str, RenderableType | None]]:
    yield "run", Text(found.run_id, "bold")
    of_schedule = f"{found.schedule_name} ({found.schedule_id}, revision {found.schedule_revision})"
    yield "schedule", of_schedule if found.schedule_id else None
    yield "runs", None if found.schedule_id else found.target
    yield "state", state(found)
    yield "why", found.message
    yield "origin", found.origin.value
    yield "reference", f"{local(found.reference_time, found.reference_zone)}  {utc(found.reference_time)}"
    yield "recorded", f"{utc(found.recorded_at)}  {relative(found.recorded_at, now)}"
    yield "took", took(found) or None
    yield "folder", found.run_folder
    yield "execution", found.execution_id
    yield "stands in", found.stands_in


def _state_of_run(run: Run) -> Text:
    """For one that waits for parents, how many of them have ended."""
    said = state(run)
    if run.state is RunState.WAITING and run.waits_for:
        ended = sum(parent.status is WaitStatus.ENDED for parent in run.waits_for)
        said.append(f"  {ended} of {len(run.waits_for)} ended")
    return said


def took(run: Run) -> str:
    return span(run.ended_at - run.started_at) if run.started_at and run.ended_at else ""
