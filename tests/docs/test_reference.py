"""The reference says what the code does, and nothing in it is left without a word."""

from __future__ import annotations

import re

from domain.run import RunState
from tests.docs import meanings
from tests.docs.error_codes import PACKAGES, ROOT, refusals
from tests.docs.reference import FILE, tables, written

VARIABLE = re.compile(r"\"(ALMANAC_[A-Z_]+)\"")


def test_the_tables_are_those_of_the_code() -> None:
    text = FILE.read_text()
    assert text == written(text), "run scripts/reference"


def test_every_row_says_something() -> None:
    silent = [
        line
        for name, table in tables().items()
        for line in table.splitlines()
        if line.endswith("|  |") and name != "states"
    ]
    assert silent == []


def test_no_sentence_is_kept_for_what_is_gone() -> None:
    assert set(meanings.CODES) <= set(refusals())
    assert set(meanings.STATES) <= set(RunState)


def test_every_variable_that_the_code_names_is_there() -> None:
    named = {
        variable
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for variable in VARIABLE.findall(file.read_text())
    }
    assert "ALMANAC_RUN_FOLDER" in named
    text = FILE.read_text()
    assert [variable for variable in sorted(named) if f"`{variable}`" not in text] == []


def test_codes_are_dotted_words() -> None:
    strange = [code for code in refusals() if not re.fullmatch(r"internal|[a-z]+(\.[a-z_]+)+", code)]
    assert strange == []
