"""The small result of a run: what its last step says it is. A program writes it to the file that ALMANAC_RESULT_FILE
names, a request's is the answer's body and a workflow's what it returned."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import JsonValue

from domain.pipeline import Step
from evidence import files
from executors import step_logs
from executors.masking import masked
from executors.pipeline_secrets import Opened
from executors.protocol import LARGEST_RESULT, Execution, TooLarge

VARIABLE = "ALMANAC_RESULT_FILE"


def beside(stdout: Path) -> Path:
    """Each attempt of a step has a file of its own, as it has logs of its own."""
    return stdout.with_name(f"returned{stdout.stem.removeprefix('stdout')}.json")


def read(step: Step, execution: Execution, parameters: Opened) -> JsonValue:
    """What the last attempt of the step has said, as JSON where it is, else as text, without secrets; None where it has
    said nothing. Raises TooLarge and OSError."""
    stdout = step_logs.latest(execution.folder / "steps" / step.id)
    if stdout is None:
        return None
    file = beside(stdout) if step.command is not None else stdout
    try:
        with files.open_file(execution.folder, f"steps/{step.id}/{file.name}") as opened:
            content = opened.read(LARGEST_RESULT + 1)
    except files.NoSuchFile:
        return None
    if len(content) > LARGEST_RESULT:
        raise TooLarge
    text = masked(content.decode(errors="replace"), parameters.hidden).strip()
    try:
        found: JsonValue = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text or None
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
