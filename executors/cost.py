"""What a step's program has left in its cost file becomes a document with the step's identity."""

from __future__ import annotations

from pathlib import Path

from domain import cost
from domain.cost import Cost
from evidence import documents, files
from executors.protocol import Execution

VARIABLE = "ALMANAC_COST_FILE"
LARGEST = 1 << 20
"""Bytes; a larger file is not counted."""


def file_beside(stdout: Path) -> Path:
    """Each attempt of a step has a cost file of its own, as it has logs of its own."""
    return stdout.with_name(f"cost{stdout.stem.removeprefix('stdout')}.jsonl")


def record(execution: Execution, step_id: str, file: Path) -> None:
    """Writes nothing where the program has said nothing. Raises OSError."""
    try:
        with files.open_file(execution.folder, f"steps/{step_id}/{file.name}") as opened:
            content = opened.read(LARGEST + 1)
    except files.NoSuchFile:
        return
    if len(content) > LARGEST:
        told: Cost | None = Cost(items=(), totals={}, problems=(f"{file.name} has more than {LARGEST} bytes.",))
    else:
        told = cost.read(content.decode(errors="replace"))
    if told is not None:
        body = told.model_dump(mode="json")
        documents.write(execution.folder, execution.identity, "cost", body, step_id=step_id)
