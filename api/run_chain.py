"""One run from end to end over REST: why it exists, where its files are, what it logged, what it cost, how it was
scored and who has reviewed it. Each link is followed by an id; none is guessed from names or times."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter

from api.parts import PartsOf, RunId, WorkspaceName
from api.run_files import RunEvidence, evidence_in, folder_of
from domain.errors import NotFound
from domain.run import Run
from domain.values import Value
from evidence import files
from evidence.files import File
from evidence.reader import Document

router = APIRouter(prefix="/api/v1/workspaces/{workspace}/runs", tags=["runs"])


class Chain(Value):
    run: Run
    """With its occurrence, and what it froze."""
    run_folder: str | None
    """Where its files are now; null where it has none, or none any more."""
    logs: tuple[File, ...] = ()
    steps: tuple[Document, ...] = ()
    """How each attempt of a step ended, in order."""
    cost_totals: dict[str, str] = {}
    """What its execution has cost, by currency."""
    scores: tuple[Document, ...] = ()
    """Of its execution."""
    quarantined: int = 0
    """Documents that lie in its folders and are set apart."""
    reviews: tuple[Run, ...]
    """The runs that review it, the newest first."""


@router.get("/{run_id}/chain")
async def read_chain(parts: PartsOf, workspace: WorkspaceName, run_id: RunId) -> Chain:
    """A run from end to end: its occurrence, folder, logs, steps, cost, scores and reviews."""
    run = await parts.queries.run(workspace, run_id)
    reviews = await parts.queries.reviews_of(workspace, run_id)
    try:
        folder = await folder_of(parts, workspace, run)
    except NotFound:
        return Chain(run=run, run_folder=None, reviews=reviews)
    return await asyncio.to_thread(_chain, run, folder, reviews)


def _chain(run: Run, folder: Path, reviews: tuple[Run, ...]) -> Chain:
    evidence = evidence_in(folder)
    execution_id = run.execution_id or ""
    return Chain(
        run=run,
        run_folder=folder.name,
        logs=tuple(file for file in files.listed(folder).files if file.path.endswith(".log")),
        steps=tuple(one for one in evidence.run.documents if one.kind == "result" and one.identity is not None),
        cost_totals=evidence.cost_totals.get(execution_id, {}),
        scores=evidence.scores.get(execution_id, ()),
        quarantined=_set_apart(evidence),
        reviews=reviews,
    )


def _set_apart(evidence: RunEvidence) -> int:
    paired = evidence.evaluation.quarantined if evidence.evaluation else ()
    return len(evidence.run.quarantined) + len(paired)
