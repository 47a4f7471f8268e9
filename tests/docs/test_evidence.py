"""The page on evidence has a proof for each of its lines, and each test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| (?P<what>[^|]+) \| (?P<proof>nothing yet|`[^|]+`) \|")
PAGE = (ROOT / "docs" / "evidence.md").read_text()
ROWS = [row for line in PAGE.splitlines() if (row := ROW.fullmatch(line))]
PROOFS = sorted({proof for row in ROWS for proof in re.findall(r"`([^`]+)`", row["proof"]) if "/" in proof})


def test_every_line_has_a_proof_or_says_that_it_has_none() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.endswith("| proof |")]
    assert [row[0] for row in ROWS] == lines
    assert len({row["what"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("proof", PROOFS)
def test_what_is_named_as_proof_is_there(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert name in functions_in(ROOT / file)


@cache
def functions_in(file: Path) -> frozenset[str]:
    body = ast.parse(file.read_text()).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
