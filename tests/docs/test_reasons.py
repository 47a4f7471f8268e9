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
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_every_reason_of_a_final_state_is_there() -> None:
    reasons = {(state.value, reason) for state in FINAL_STATES for reason in REASONS.get(state, ())}
    rows = {(row["state"], row["reason"]) for row in ROWS}
    assert rows - {("succeeded", None), ("aborted", None)} == reasons


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['state']}-{row['reason'] or ''}")
def test_what_is_named_as_proof_is_there_and_tells_of_the_end(row: re.Match[str]) -> None:
    if not row["by"].startswith("`"):
        assert row["by"].startswith("nothing")
        return
    file, _, name = row["by"].strip("`").partition("::")
    assert (row["reason"] or row["state"]) in _text_of(ROOT / file, name)


def _text_of(file: Path, name: str) -> str:
    """Of a test, with its parameters and with the constants of its file that it names."""
    source = file.read_text()
    tree = ast.parse(source)
    (test,) = (node for node in tree.body if isinstance(node, FUNCTION) and node.name == name)
    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    constants = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and named & {one.id for one in node.targets if isinstance(one, ast.Name)}
    ]
    parts = (*test.decorator_list, test, *constants)
    return "\n".join(ast.get_source_segment(source, part) or "" for part in parts).lower()
