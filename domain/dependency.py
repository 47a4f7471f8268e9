"""Which occurrence of a parent a dependent waits for, and what its end means.

A dependent occurrence waits for the matching occurrence of every parent on the same local calendar date. Each
occurrence's date is its own schedule's nominal local date, and the two dates are compared; an occurrence that
stands for two dates satisfies either. The match is the parent's last occurrence of the date due at or before
the dependent's instant, else the first of the date.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum

from domain.run import FINAL_STATES, ParentWait, RunState, WaitStatus
from domain.values import Value


class TerminalStatus(StrEnum):
    COMPLETED = "completed"
    """Only a parent that succeeded releases."""
    ANY_TERMINAL = "any_terminal"
    """Every conclusive end releases."""


class Question(Value):
    """What a dependent asks a parent: the end of its occurrence on these dates."""

    dependent_id: str
    run_id: str
    dates: tuple[date, ...]
    instant: datetime | None
    """The dependent's own instant; None asks for the last occurrence of the dates."""
    exactly: datetime | None = None
    """The very occurrence, where the parent itself has named it."""
    until: datetime
    """When the dependent stops waiting, whatever the answer."""


class Answer(Value):
    """What a parent says. Answers may come late, twice and out of order; the latest knowledge wins."""

    run_id: str
    """The dependent's run that asked."""
    parent: ParentWait


class Verdict(StrEnum):
    HOLDS = "holds"
    RELEASES = "releases"
    FAILS = "fails"
    ABSENT = "absent"


class Settlement(Value):
    """Where a waiting run stands: which parent decides it, or when the last of them ended."""

    verdict: Verdict
    parent: ParentWait | None = None
    released_at: datetime | None = None


def match(candidates: Iterable[datetime], instant: datetime | None) -> datetime | None:
    """The last of a parent's occurrences of the date that is due at or before `instant`, else the first; the last of
    all where `instant` is None."""
    return match_ordered(sorted(candidates), instant)


def match_ordered(candidates: Sequence[datetime], instant: datetime | None) -> datetime | None:
    """The same where the candidates are in order already, as when thousands of instants are matched with them."""
    if not candidates:
        return None
    due = len(candidates) if instant is None else bisect_right(candidates, instant)
    return candidates[max(due - 1, 0)]


def judge(parent: ParentWait, terminal: TerminalStatus) -> Verdict:
    """What one parent's state means. An unknown end releases nothing: the work may still be going on."""
    if parent.status is WaitStatus.ABSENT:
        return Verdict.ABSENT
    state = parent.run_state
    if parent.status is not WaitStatus.ENDED or state is None or state not in FINAL_STATES or state is RunState.UNKNOWN:
        return Verdict.HOLDS
    if state is RunState.SUCCEEDED or terminal is TerminalStatus.ANY_TERMINAL:
        return Verdict.RELEASES
    return Verdict.FAILS


def settle(parents: tuple[ParentWait, ...], terminal: TerminalStatus, delay: timedelta) -> Settlement:
    """A failed or absent parent decides at once; otherwise the last parent's end, and the delay counts from it."""
    verdicts = [(judge(parent, terminal), parent) for parent in parents]
    for decisive in (Verdict.FAILS, Verdict.ABSENT):
        found = next((parent for verdict, parent in verdicts if verdict is decisive), None)
        if found is not None:
            return Settlement(verdict=decisive, parent=found)
    if any(verdict is Verdict.HOLDS for verdict, _ in verdicts):
        return Settlement(verdict=Verdict.HOLDS)
    last = max(parent.ended_at for parent in parents if parent.ended_at is not None)
    return Settlement(verdict=Verdict.RELEASES, released_at=last + delay)


def is_conclusive(parent: ParentWait) -> bool:
    """Whether nothing that is told later can change it."""
    return parent.status is WaitStatus.ENDED and parent.run_state is not RunState.UNKNOWN


def learned(known: ParentWait, told: ParentWait) -> ParentWait:
    """What is known of a parent after another answer. A conclusive end is never taken back."""
    if is_conclusive(known):
        return known
    overtaken = known.told_at is not None and told.told_at is not None and told.told_at < known.told_at
    return known if overtaken else told
