"""How long to wait before trying again: twice as long each time, up to a longest pause."""

from __future__ import annotations

from datetime import timedelta

ENOUGH = 32
"""So many doublings make any pause longer than anybody waits, and still a number that a timedelta can hold."""


def pause(first: timedelta, failures: int, longest: timedelta) -> timedelta:
    """After so many failures, however many: what fails for weeks is tried again like what fails for minutes."""
    doublings: int = 2 ** min(failures, ENOUGH)
    return min(first * doublings, longest)
