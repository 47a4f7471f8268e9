"""The page on how runs end has every reason, and each test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from domain.run import FINAL_STATES, REASONS

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| `(?P<state>\w+)` \| (`(?P<reason>\w+)`)? ?\| (?P<by>.+) \|")
ROWS = [row for line in (ROOT / "docs" / "reasons.md").read_text().splitlines() if (row := ROW.fullmatch(line))]
PROOFS = [row["by"].strip("`") for row in ROWS if row["by"].startswith("`")]


def test_every_reason_of_a_final_state_is_there() -> None:
    reasons = {(state.value, reason) for state in FINAL_STATES for reason in REASONS.get(state, ())}
    rows = {(row["state"], row["reason"]) for row in ROWS}
    assert rows - {("succeeded", None), ("aborted", None)} == reasons


@pytest.mark.parametrize("proof", sorted(set(PROOFS)))
def test_what_is_named_as_proof_is_there(proof: str) -> None:
    file, _, name = proof.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert not name or name in functions
