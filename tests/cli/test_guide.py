"""The guide is printed as it stands in the docs, and says only what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.guide import PAGE
from cli.main import app, main
from evidence import index

ROOT = Path(__file__).parents[2]


def test_it_prints_the_page_of_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["guide"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "guide.md").read_text() == PAGE.read_text()


def test_the_variables_it_names_are_told_to_steps() -> None:
    told = "".join(file.read_text() for file in (ROOT / "executors").glob("*.py"))
    named = set(re.findall(r"ALMANAC_[A-Z_]+", PAGE.read_text()))
    assert named
    assert {variable for variable in named if f'"{variable}"' not in told} == set()


def test_the_commands_it_names_are_there() -> None:
    named = set(re.findall(r"^    almanac (\S+)", PAGE.read_text(), re.MULTILINE))
    assert named
    assert named <= {command.name for command in app.registered_commands}


def test_the_choices_it_names_are_those_of_the_index() -> None:
    for name in index.Latest.model_fields:
        assert f"`{name}`" in PAGE.read_text()


def test_it_says_that_no_claim_makes_overlap_safe() -> None:
    assert "No list of files or resources" in PAGE.read_text()
