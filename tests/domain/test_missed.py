"""What becomes of a backlog: the table, its inclusive bounds, and the cases users reported."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.missed import decide
from domain.run import Missed, Origin
from domain.schedule import Backlog, MissedPolicy
from tests.domain.builders import NOON, at, planned

SKIP, LATEST = MissedPolicy.SKIP, MissedPolicy.LATEST
ONE = Backlog(count=1, first=NOON, previous=None, latest=planned(NOON))
MANY = Backlog(count=12, first=at("01:00"), previous=at("11:00"), latest=planned(NOON))


def decision(backlog: Backlog, policy: MissedPolicy, late: float) -> tuple[bool, Origin, Missed | None]:
    made = decide(
        backlog, policy, NOON + timedelta(seconds=late), lateness_seconds=600, catch_up_max_age_seconds=86_400
    )
    return made.run is not None, made.origin, made.missed


ALL_OF_ONE = Missed(first=NOON, last=NOON, count=1)
ALL_OF_MANY = Missed(first=at("01:00"), last=NOON, count=12)
BUT_THE_LATEST = Missed(first=at("01:00"), last=at("11:00"), count=11)


@pytest.mark.parametrize(
    ("backlog", "policy", "late", "runs", "origin", "missed"),
    [
        (ONE, SKIP, 0, True, Origin.CRON, None),
        (ONE, SKIP, 1.8, True, Origin.CRON, None),
        (ONE, SKIP, 600, True, Origin.CRON, None),
        (ONE, SKIP, 601, False, Origin.CRON, ALL_OF_ONE),
        (MANY, SKIP, 300, True, Origin.CRON, BUT_THE_LATEST),
        (MANY, SKIP, 600, True, Origin.CRON, BUT_THE_LATEST),
        (MANY, SKIP, 600.001, False, Origin.CRON, ALL_OF_MANY),
        (ONE, LATEST, 600, True, Origin.CRON, None),
        (ONE, LATEST, 601, True, Origin.CATCH_UP, None),
        (ONE, LATEST, 86_400, True, Origin.CATCH_UP, None),
        (ONE, LATEST, 86_401, False, Origin.CRON, ALL_OF_ONE),
        (MANY, LATEST, 300, True, Origin.CATCH_UP, BUT_THE_LATEST),
        (MANY, LATEST, 86_400, True, Origin.CATCH_UP, BUT_THE_LATEST),
        (MANY, LATEST, 86_401, False, Origin.CRON, ALL_OF_MANY),
    ],
)
def test_a_backlog_becomes_at_most_one_run_and_one_summary(
    backlog: Backlog, policy: MissedPolicy, late: float, runs: bool, origin: Origin, missed: Missed | None
) -> None:
    made = decision(backlog, policy, late)
    assert made[0] is runs
    assert made[2] == missed
    assert not runs or made[1] is origin


def test_a_lateness_window_longer_than_the_catch_up_age_does_not_bring_back_what_is_too_old() -> None:
    made = decide(MANY, LATEST, NOON + timedelta(hours=2), lateness_seconds=86_400, catch_up_max_age_seconds=3600)
    assert made.run is None
    assert made.missed == ALL_OF_MANY
