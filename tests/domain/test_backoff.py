from __future__ import annotations

from datetime import timedelta

from domain.backoff import pause

FIRST, LONGEST = timedelta(seconds=1), timedelta(seconds=30)


def test_it_doubles_up_to_the_longest() -> None:
    assert [pause(FIRST, n, LONGEST).seconds for n in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_it_never_ends() -> None:
    assert {pause(FIRST, n, LONGEST) for n in range(6, 10_000)} == {LONGEST}
