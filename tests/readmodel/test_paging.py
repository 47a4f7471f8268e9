"""A cursor is what the list gave out, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Invalid
from readmodel.paging import page_of, position_of


@given(position=st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.text("abc", min_size=1)))
def test_a_cursor_names_its_position(position: tuple[str, str]) -> None:
    cursor = page_of("list", [(1, position), (2, ("", ""))], 1).next_cursor
    assert cursor is not None
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert position_of("list", cursor, 2) == position


@given(cursor=st.text())
def test_any_other_text_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="begin again"):
        position_of("list", cursor, 2)


def test_a_cursor_belongs_to_its_list_and_shape() -> None:
    cursor = page_of("list", [(1, ("a",)), (2, ("b",))], 1).next_cursor
    assert cursor is not None
    for listing, parts in (("another", 1), ("list", 2)):
        with pytest.raises(Invalid):
            position_of(listing, cursor, parts)
