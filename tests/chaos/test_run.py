"""The chaos run in short: what a minute of kills leaves behind is what the specification says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chaos import acts, drive, plan
from tests.chaos.plan import Size

SHORT = Size(seconds=40, schedules=14, act_every=0.8, blow_every=5.0, slowest_step=4.0, heartbeat_seconds=1)
SEED = 7
MORNING = datetime(2027, 3, 1, 9, tzinfo=UTC)


@pytest.mark.stack
@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_under_kills_every_occurrence_has_one_honest_end(tmp_path: Path) -> None:
    told: list[str] = []
    outcome = await drive.run(SEED, SHORT, tmp_path, tell=told.append)
    assert outcome.violations == [], told
    assert outcome.occurrences
    assert sum(outcome.kills.values()) >= 3
    assert outcome.evidence.ledger


def test_a_seed_is_a_plan() -> None:
    made = plan.plan(SEED, SHORT, MORNING)
    assert made == plan.plan(SEED, SHORT, MORNING)
    assert replace(made, seed=SEED + 1) != plan.plan(SEED + 1, SHORT, MORNING)


def test_a_plan_has_all_kinds_of_schedules_acts_and_blows() -> None:
    made = plan.plan(SEED, Size(1800, 56, 2.0, 11.0), MORNING)
    bodies = [planned.body for planned in made.schedules]
    assert {body["collision_policy"] for body in bodies} == set(plan.COLLISIONS)
    assert {body["missed_policy"] for body in bodies} == set(plan.MISSED)
    assert {"cron" in body for body in bodies} == {"admission" in body for body in bodies} == {True, False}
    assert max(len(planned.parents) for planned in made.schedules) > 1
    assert {act.what for act in made.acts} == set(acts.DO)
    kinds = {(blow.part, bool(blow.seconds)) for blow in made.blows}
    assert kinds == {(part, how != "kill") for part, how in plan.BLOWS}
