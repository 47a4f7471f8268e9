"""Outages for real: a schedule wakes up long after it was last awake, and deals with what fell due at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.run import Origin, Run, RunState
from tests.workflows.harness import Harness

pytestmark = pytest.mark.stack

STEP = timedelta(minutes=5)


def of_the_outage(runs: list[Run], woke: datetime) -> list[Run]:
    """Without what fell due by itself since."""
    return [run for run in runs if run.scheduled_for is None or run.scheduled_for <= woke]


async def test_a_year_s_outage_is_one_row_and_the_schedule_goes_on(harness: Harness) -> None:
    woke = datetime.now(UTC)
    schedule = await harness.asleep_since(woke - timedelta(days=365), cron="*/5 * * * *", lateness_seconds=0)
    (summary,) = of_the_outage(await harness.final(schedule), woke)
    assert (summary.state, summary.reason) == (RunState.SKIPPED, "missed")
    assert summary.missed is not None
    assert summary.missed.count == 365 * 288
    assert (summary.missed.last - summary.missed.first) / STEP == summary.missed.count - 1
    view = await harness.view(schedule)
    assert view.next_due_at is not None
    assert view.next_due_at > woke


async def test_latest_catches_up_once_and_sums_up_the_others(harness: Harness) -> None:
    woke = datetime.now(UTC)
    schedule = await harness.asleep_since(
        woke - timedelta(hours=12), cron="*/5 * * * *", missed_policy="latest", lateness_seconds=0
    )
    summary, caught_up = of_the_outage(await harness.final(schedule, 2), woke)
    assert summary.missed is not None
    assert summary.missed.count == 143
    assert (caught_up.origin, caught_up.state) == (Origin.CATCH_UP, RunState.SUCCEEDED)
    assert caught_up.scheduled_for == summary.missed.last + STEP


async def test_within_the_lateness_window_the_latest_runs_as_if_nothing_had_been(harness: Harness) -> None:
    woke = datetime.now(UTC)
    schedule = await harness.asleep_since(woke - timedelta(hours=1), cron="*/5 * * * *", lateness_seconds=600)
    summary, ran = of_the_outage(await harness.final(schedule, 2), woke)
    assert summary.missed is not None
    assert summary.missed.count == 11
    assert (ran.origin, ran.state) == (Origin.CRON, RunState.SUCCEEDED)
    assert ran.scheduled_for == summary.missed.last + STEP


async def test_a_dead_schedule_of_decades_costs_no_more(harness: Harness) -> None:
    woke = datetime.now(UTC)
    schedule = await harness.asleep_since(datetime(1970, 1, 2, tzinfo=UTC), cron="* * * * *", lateness_seconds=0)
    (summary,) = of_the_outage(await harness.final(schedule), woke)
    assert summary.missed is not None
    assert summary.missed.count > 56 * 365 * 1440
