"""One command step of a run: its directory, its environment, its program and its result document.

    <run folder>/work/                       where programs run; shared by the steps of the run
    <run folder>/steps/<step>/stdout.log     and stderr.log: what the program wrote
    <run folder>/steps/<step>/identity-1.json   whose step and logs these are, for the program to read
    <run folder>/steps/<step>/parameters-1.json   the run's parameters, where there are any
    <run folder>/steps/<step>/result-1.json     how it ended
    <run folder>/steps/<step>/cost.jsonl     what it says it has cost, which becomes cost-1.json
    <run folder>/steps/<step>/returned.json  what the run returns, if this is its last step

A group's steps have all this below the group's folder, and the steps of an evaluation have it below the paired folder
of the evaluation, where they may leave score.jsonl too.

A repeated step writes stdout-2.log and so on: nothing is overwritten.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from domain.pipeline import Step
from evidence import documents
from executors import http_step, returned, step_logs, told, workflow_step
from executors.pipeline_secrets import Opened
from executors.process import Captured, Command, Ended, Guardians, Program
from executors.protocol import Execution
from executors.started_workflows import Workflows

LAST_LINE_CHARACTERS = 300
LAST_LINE_BYTES = 4096


@dataclass(frozen=True)
class Means:
    """What steps are run with."""

    guardians: Guardians
    workflows: Workflows | None
    """Absent where nothing is run, as in the API."""


async def run(step: Step, execution: Execution, parameters: Opened, means: Means) -> str | None:
    """Runs the step; None when it succeeded, else what went wrong, in words that follow its name. When cancelled,
    what it runs is stopped and the result written before CancelledError goes on."""
    try:
        if step.http is not None:
            return await http_step.run(step, step.http, execution, parameters)
        if step.workflow is not None:
            assert means.workflows is not None
            return await workflow_step.run(step, step.workflow, execution, parameters, means.workflows)
        return await _run_program(step, execution, parameters, means.guardians)
    except OSError as error:
        return f"could not write to the run folder: {error.strerror or error}"


async def _run_program(step: Step, execution: Execution, parameters: Opened, guardians: Guardians) -> str | None:
    command = await asyncio.to_thread(_command, step, execution, parameters)
    program = Program(command, guardians)
    try:
        ended = await program.run()
    except asyncio.CancelledError:
        if program.ended is not None:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(_write_result, step, execution, command, program.ended)
        raise
    await asyncio.to_thread(_write_result, step, execution, command, ended)
    if ended.succeeded:
        return None
    return await asyncio.to_thread(_failure, step, ended, command)


def _command(step: Step, execution: Execution, parameters: Opened) -> Command:
    assert step.command is not None
    work = execution.folder.absolute() / "work"
    work.mkdir(parents=True, exist_ok=True)
    stdout, stderr, identity = step_logs.begin(execution, step.id)
    return Command(
        argv=step.command,
        environment={
            **_environment(step, execution, identity),
            **_parameters(step, execution, parameters),
            **told.variables(execution, stdout),
            returned.VARIABLE: str(returned.beside(stdout)),
        },
        directory=work,
        stdout=stdout,
        stderr=stderr,
        timeout_seconds=step.timeout_seconds,
        secrets=parameters.hidden,
    )


def _environment(step: Step, execution: Execution, identity_file: Path) -> Mapping[str, str]:
    """The least a program expects, then what the definition says, then what it may not change."""
    identity = execution.identity
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", str(execution.folder.absolute())),
        "LANG": "C.UTF-8",
        **step.environment,
        "ALMANAC_RUN_ID": identity.run_id,
        "ALMANAC_WORKSPACE": identity.workspace,
        "ALMANAC_EXECUTION_ID": identity.execution_id,
        "ALMANAC_RUN_FOLDER": str((execution.evaluates or execution.folder).absolute()),
        "ALMANAC_STEP_ID": step.id,
        "ALMANAC_RUN_IDENTITY": str(identity_file),
    }
    known = {
        "ALMANAC_GROUP": identity.group,
        "ALMANAC_EVIDENCE_RUN_FOLDER": str(execution.reviews.absolute()) if execution.reviews else None,
        "ALMANAC_EVIDENCE_RUN_ID": execution.prepared.evidence.run_id if execution.prepared.evidence else None,
        "ALMANAC_EVALUATION_FOLDER": str(execution.folder.absolute()) if execution.evaluates else None,
        "ALMANAC_SCHEDULE_ID": identity.schedule_id,
        "ALMANAC_SCHEDULED_FOR": _utc(identity.scheduled_for) if identity.scheduled_for else None,
        "ALMANAC_REFERENCE_TIME": _utc(execution.reference_time) if execution.reference_time else None,
    }
    told = {name: value for name, value in known.items() if value is not None}
    return {**{name: value for name, value in environment.items() if name not in known}, **told}


def _parameters(step: Step, execution: Execution, parameters: Opened) -> Mapping[str, str]:
    """A parameter without a value has no variable; true and false are written as in JSON. The file has all, and the
    mask for a secret."""
    if not parameters.shown:
        return {}
    folder = execution.folder.absolute()
    file = documents.write(folder, execution.identity, "parameters", parameters.shown, step_id=step.id, lasting=False)
    return {
        f"ALMANAC_PARAMETER_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in {**parameters.shown, **parameters.secrets}.items()
        if value is not None
    } | {"ALMANAC_PARAMETERS": str(file)}


def _utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _write_result(step: Step, execution: Execution, command: Command, ended: Ended) -> None:
    failed = "stopped" if ended.stopped == "cancelled" else "failed"
    body: dict[str, JsonValue] = {
        "status": "succeeded" if ended.succeeded else failed,
        "stopped": ended.stopped,
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "problem": ended.problem,
        "started_at": _utc(ended.started_at),
        "completed_at": _utc(ended.ended_at),
        "duration_seconds": round(ended.seconds, 6),
        "stdout": _log(command.stdout, ended.stdout),
        "stderr": _log(command.stderr, ended.stderr),
    }
    documents.write(
        execution.folder,
        execution.identity,
        "result",
        body,
        step_id=step.id,
        started_at=ended.started_at,
        completed_at=ended.ended_at,
        status=str(body["status"]),
    )
    told.record(execution, step.id, command.stdout)


def _log(path: Path, captured: Captured) -> dict[str, JsonValue]:
    return {"file": path.name, "bytes": captured.size, "bytes_left_out": captured.dropped}


def _failure(step: Step, ended: Ended, command: Command) -> str:
    if ended.stopped == "timeout":
        return f"was stopped after {step.timeout_seconds} s, its own timeout."
    if ended.problem is not None:
        return f"has the program '{command.argv[0]}', which {ended.problem}."
    last = _last_line(command.stderr)
    return f"{ended.how}: {last}" if last else f"{ended.how}."


def _last_line(path: Path) -> str:
    """The last line with anything on it, fit to stand in a sentence."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_LINE_BYTES))
        text = file.read().decode(errors="replace")
    printable = ("".join(c if c.isprintable() else " " for c in line).strip() for line in text.splitlines())
    last = next((line for line in reversed(list(printable)) if line), "")
    return last if len(last) <= LAST_LINE_CHARACTERS else last[: LAST_LINE_CHARACTERS - 1] + "…"
