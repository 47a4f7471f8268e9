"""When the ends of executions wait for beginnings."""

from __future__ import annotations

import asyncio

from activities.surge import MANY, WINDOW_SECONDS, Surge


class Clock:
    """Goes on only when told, and by `step` each time it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def surging(clock: Clock, slots: int = 100, beginnings: int = MANY) -> Surge:
    surge = Surge(slots, clock)
    for _ in range(beginnings):
        surge.begun()
    return surge


def test_many_beginnings_at_once_are_a_surge() -> None:
    assert surging(Clock()).is_on
    assert not surging(Clock(), beginnings=MANY - 1).is_on


def test_it_is_over_when_beginnings_become_rare() -> None:
    clock = Clock()
    surge = surging(clock)
    clock.now = WINDOW_SECONDS
    assert not surge.is_on


def test_no_slot_that_may_be_wanted_is_held() -> None:
    surge = surging(Clock(), slots=2)
    with surge:
        assert surge.is_on
        with surge:
            assert not surge.is_on


async def test_an_end_waits_until_it_is_over() -> None:
    clock = Clock()
    surge = surging(clock)
    clock.step = WINDOW_SECONDS / 4
    await surge.over()
    assert not surge.is_on


async def test_no_end_waits_for_ever() -> None:
    clock = Clock()
    surge = surging(clock)
    clock.step = WINDOW_SECONDS / MANY / 2

    async def more() -> None:
        while True:
            surge.begun()
            await asyncio.sleep(0)

    others = asyncio.create_task(more())
    await surge.over()
    others.cancel()
    assert surge.is_on
