"""Each defect that the checker is tried with can still be put into the product."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.chaos import checker
from tests.chaos.mutants import MUTANTS


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_finds_what_it_replaces(name: str) -> None:
    """In a process of its own, which no other test has to live with."""
    put_in = f"from tests.chaos.mutants import MUTANTS; MUTANTS[{name!r}].defect()"
    subprocess.run([sys.executable, "-c", put_in], check=True, timeout=60)


def test_what_catches_a_defect_is_a_check() -> None:
    checks = {check.__name__ for check in checker.CHECKS}
    assert {check for mutant in MUTANTS.values() for check in mutant.caught_by} <= checks
