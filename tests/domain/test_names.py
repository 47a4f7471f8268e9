"""What a schedule may be called."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain import names
from domain.errors import Invalid


@pytest.mark.parametrize("name", ["a", "finance/daily/revenue", "Über uns/täglich", "a b/c.d", "日次/売上", "x" * 200])
def test_a_path_of_printable_words_is_a_name(name: str) -> None:
    names.check(name)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("", "is empty"),
        ("x" * 201, "201 characters"),
        ("/a", "empty part"),
        ("a/", "empty part"),
        ("a//b", "empty part"),
        (" a", "blank"),
        ("a ", "blank"),
        ("a/ b", "blank"),
        (".", "only dots"),
        ("a/../b", "only dots"),
        ("a\nb", "printed"),
        ("a\0b", "printed"),
        ("a\u202eb", "printed"),
        ("\u00a0a", "printed"),
        ("\ud800", "printed"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(name: str, wrong: str) -> None:
    with pytest.raises(Invalid, match=wrong) as refused:
        names.check(name)
    assert (refused.value.code, refused.value.field) == ("schedule.validation.name_invalid", "name")


def test_names_that_look_the_same_have_one_key() -> None:
    assert names.name_key("Caf\u00e9/A") == names.name_key("cafe\u0301/a")
    assert names.name_key("a/b") != names.name_key("a/c")


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_name_or_refused(name: str) -> None:
    try:
        names.check(name)
    except Invalid:
        return
    assert name == "/".join(part.strip() for part in name.split("/") if part)
