"""What a step's program tells in a file, of its cost or of its score, becomes a document with the step's identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from domain import cost, score
from domain.values import Value
from evidence import documents, files
from executors.protocol import Execution

LARGEST = 1 << 20
"""Bytes; a larger file is not counted."""

VARIABLES = {"cost": "ALMANAC_COST_FILE", "score": "ALMANAC_SCORE_FILE"}
READERS: Mapping[str, Callable[[str], Value | None]] = {"cost": cost.read, "score": score.read}


def variables(execution: Execution, stdout: Path) -> dict[str, str]:
    """Where the program may tell what; only a step that evaluates a run has a score to tell."""
    return {VARIABLES[kind]: str(_beside(stdout, kind)) for kind in _kinds(execution)}


def record(execution: Execution, step_id: str, stdout: Path) -> None:
    """Writes nothing where the program has said nothing. Raises OSError."""
    for kind in _kinds(execution):
        body = _read(execution.folder, step_id, _beside(stdout, kind), kind)
        if body is not None:
            documents.write(execution.folder, execution.identity, kind, body, step_id=step_id)


def _kinds(execution: Execution) -> tuple[str, ...]:
    return ("cost",) if execution.evaluates is None else ("cost", "score")


def _beside(stdout: Path, kind: str) -> Path:
    """Each attempt of a step has a file of its own, as it has logs of its own."""
    return stdout.with_name(f"{kind}{stdout.stem.removeprefix('stdout')}.jsonl")


def _read(folder: Path, step_id: str, file: Path, kind: str) -> documents.Body | None:
    try:
        with files.open_file(folder, f"steps/{step_id}/{file.name}") as opened:
            content = opened.read(LARGEST + 1)
    except files.NoSuchFile:
        return None
    if len(content) > LARGEST:
        return {"problems": [f"{file.name} has more than {LARGEST} bytes."]}
    told = READERS[kind](content.decode(errors="replace"))
    return None if told is None else told.model_dump(mode="json")
