"""What the bench of an outage counts as lost and as doubled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bench import catchup
from bench.catchup import Account
from domain.run import Missed, Origin, Run, RunState

WOKE = datetime(2026, 12, 1, 12, 3, 30, tzinfo=UTC)
DUE = catchup.occurrences(WOKE - timedelta(hours=1), WOKE)


def run(at: datetime, missed: Missed | None = None) -> Run:
    return Run(
        run_id=f"s0-{at:%Y%m%dT%H%M%SZ}",
        workspace="w",
        schedule_id="s0",
        schedule_name="s0",
        schedule_revision=1,
        origin=Origin.CRON,
        scheduled_for=None if missed else at,
        reference_time=at,
        reference_zone="UTC",
        executor="pipeline",
        target="pipeline:p",
        state=RunState.SKIPPED if missed else RunState.SUCCEEDED,
        recorded_at=WOKE,
        changed_at=WOKE,
        missed=missed,
    )


SUMMARY = run(DUE[0], Missed(first=DUE[0], last=DUE[-2], count=len(DUE) - 1))


def test_an_hour_has_twelve_five_minutes() -> None:
    assert (len(DUE), DUE[0].minute, DUE[-1].minute) == (12, 8, 3)


def test_a_summary_and_a_run_account_for_all() -> None:
    assert catchup.account([SUMMARY, run(DUE[-1])], DUE, starts=1) == Account(lost=0, doubled=0)


def test_what_no_row_accounts_for_is_lost() -> None:
    assert catchup.account([SUMMARY], DUE, starts=0) == Account(lost=1, doubled=0)


def test_a_run_whose_program_never_started_is_lost() -> None:
    assert catchup.account([SUMMARY, run(DUE[-1])], DUE, starts=0) == Account(lost=1, doubled=0)


def test_two_rows_for_one_occurrence_are_doubled() -> None:
    assert catchup.account([SUMMARY, run(DUE[-2]), run(DUE[-1])], DUE, starts=2) == Account(lost=0, doubled=1)


def test_a_program_started_twice_is_doubled() -> None:
    assert catchup.account([SUMMARY, run(DUE[-1])], DUE, starts=2) == Account(lost=0, doubled=1)
