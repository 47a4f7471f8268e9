"""Reads the evidence, each thing from where it is: by SQL, from histories, from files. Nothing is read through the
product's own readers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from tests.chaos.evidence import Claim, Folder, Life, Line, RunRow, Said, TrailRow, Workflow, seconds

AT_ONCE = 8
HARMLESS = {
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE,
}
"""Something came in while a task was at work, and it is done again."""


def certain(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# The database ----------------------------------------------------------------------------------------------------


async def rows(url: str) -> tuple[tuple[RunRow, ...], dict[str, dict[str, Any]], tuple[Claim, ...]]:
    """Runs with their trails, schedules, and claims."""
    connection = await asyncpg.connect(url)
    try:
        trails: dict[str, list[TrailRow]] = {}
        for found in await connection.fetch("SELECT record FROM trail ORDER BY run_id, seq"):
            row = json.loads(found["record"])
            trails.setdefault(row["run_id"], []).append(_trail_row(row))
        records = [json.loads(found["record"]) for found in await connection.fetch("SELECT record FROM runs")]
        runs = tuple(_run(record, tuple(trails.get(record["run_id"], ()))) for record in records)
        found_schedules = await connection.fetch("SELECT schedule_id, record FROM schedules")
        schedules = {found["schedule_id"]: json.loads(found["record"]) for found in found_schedules}
        claims = await connection.fetch("SELECT execution_id, run_id, worker, status, outcome FROM executions")
        return runs, schedules, tuple(Claim(**dict(claim)) for claim in claims)
    finally:
        await connection.close()


def _trail_row(row: Mapping[str, Any]) -> TrailRow:
    return TrailRow(row["seq"], certain(row["at"]), row["kind"], row["state"], row["reason"], row["data"])


def _run(record: dict[str, Any], trail: tuple[TrailRow, ...]) -> RunRow:
    stretch = record["missed"]
    missed = (certain(stretch["first"]), certain(stretch["last"]), stretch["count"]) if stretch else None
    same = ("run_id", "workspace", "schedule_id", "origin", "state", "reason", "seq", "target", "execution_id")
    values: dict[str, Any] = {name: record[name] for name in (*same, "run_folder", "stands_in")}
    for name in ("scheduled_for", "started_at", "ended_at", "start_by"):
        values[name] = seconds(record[name])
    return RunRow(
        **values,
        revision=record["schedule_revision"],
        recorded_at=certain(record["recorded_at"]),
        missed=missed,
        waits_for=tuple(record["waits_for"]),
        trail=trail,
        record=record,
    )


async def schedule_rows(url: str) -> dict[str, dict[str, Any]]:
    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetch("SELECT schedule_id, record FROM schedules")
        return {row["schedule_id"]: json.loads(row["record"]) for row in found}
    finally:
        await connection.close()


async def open_runs(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        asked = "SELECT run_id, state FROM runs WHERE state IN ('waiting', 'queued', 'starting', 'running')"
        return [f"{found['run_id']} {found['state']}" for found in await connection.fetch(asked)]
    finally:
        await connection.close()


# Temporal --------------------------------------------------------------------------------------------------------


async def histories(client: Client) -> tuple[tuple[Life, ...], tuple[Workflow, ...]]:
    """Of everything in the namespace."""
    listed = [execution async for execution in client.list_workflows("")]
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(execution: WorkflowExecution) -> list[HistoryEvent]:
        async with gate:
            handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
            return [event async for event in handle.fetch_history_events()]

    events = await asyncio.gather(*(read(execution) for execution in listed))
    told = list(zip(listed, events, strict=True))
    workflows = tuple(_workflow(execution, found) for execution, found in told)
    schedules: dict[str, list[tuple[WorkflowExecution, list[HistoryEvent]]]] = {}
    for execution, found in told:
        if execution.id.startswith("schedule/"):
            schedules.setdefault(execution.id, []).append((execution, found))
    lives = [await _life(client, workflow_id, chain) for workflow_id, chain in schedules.items()]
    return tuple(lives), workflows


async def _life(client: Client, workflow_id: str, chain: list[tuple[WorkflowExecution, list[HistoryEvent]]]) -> Life:
    chain.sort(key=lambda link: link[0].start_time)
    said: list[Said] = []
    tasks: list[float] = []
    for _, events in chain:
        _follow(events, said, tasks)
    _, workspace, schedule_id = workflow_id.split("/", 2)
    running = chain[-1][0].status is WorkflowExecutionStatus.RUNNING
    view = await client.get_workflow_handle(workflow_id).query("schedule") if running else None
    return Life(workspace, schedule_id, tuple(said), tuple(tasks), view)


def _follow(events: Iterable[HistoryEvent], said: list[Said], tasks: list[float]) -> None:
    """A signal is dealt with by the next task that begins after it and is completed; an accepted update by the task
    that was completed just before it was noted."""
    arrived: list[tuple[str, dict[str, Any]]] = []
    began, taken = 0.0, 0
    for event in events:
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
                signal = event.workflow_execution_signaled_event_attributes
                arrived.append((signal.signal_name, _body(signal.input.payloads)))
            case EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED:
                began, taken = _at(event), len(arrived)
            case EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                tasks.append(began)
                said += [Said(began, name, body) for name, body in arrived[:taken]]
                del arrived[:taken]
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
                asked = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
                said.append(Said(began, asked.name, _body(asked.args.payloads)))


def _workflow(execution: WorkflowExecution, events: list[HistoryEvent]) -> Workflow:
    failures = []
    result = None
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            if failed.cause not in HARMLESS:
                failures.append(f"{WorkflowTaskFailedCause.Name(failed.cause)}: {failed.failure.message}")
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED and execution.id.startswith("run/"):
            result = _body(event.workflow_execution_completed_event_attributes.result.payloads)
    status = execution.status.name if execution.status is not None else "?"
    return Workflow(execution.id, execution.workflow_type, status, result, tuple(failures))


def _body(payloads: Iterable[Any]) -> dict[str, Any]:
    first = next(iter(payloads), None)
    body = json.loads(first.data) if first is not None and first.data else {}
    return body if isinstance(body, dict) else {"value": body}


def _at(event: HistoryEvent) -> float:
    return event.event_time.seconds + event.event_time.nanos / 1e9


# Files -----------------------------------------------------------------------------------------------------------


def ledger(path: Path) -> tuple[Line, ...]:
    return tuple(Line(**json.loads(line)) for line in path.read_text().splitlines())


def folders(storage: Path) -> tuple[Folder, ...]:
    return tuple(
        Folder(
            workspace=path.parts[-4],
            pipeline=path.parts[-3],
            name=path.name,
            marker=_text(path / ".schedule-run-id"),
            metadata=_json(path / "run_metadata.json"),
        )
        for path in sorted(storage.glob("*/*/runs/iteration-*"))
    )


def _text(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _json(path: Path) -> dict[str, Any] | None:
    text = _text(path)
    found: dict[str, Any] | None = json.loads(text) if text is not None else None
    return found
