"""What Temporal's UI says about a run that waits for others."""

from __future__ import annotations

from datetime import timedelta

from domain.run import Run, RunState
from tests.domain.builders import at, definition
from tests.domain.town import Town
from workflows import words


def test_each_parent_is_listed_with_its_occurrence_its_state_and_since_when() -> None:
    def fails(run: Run) -> tuple[RunState, timedelta, timedelta | None]:
        return RunState.UNKNOWN, timedelta(minutes=20), None

    town = Town(at("00:00"), fails)
    town.create("early", definition(name="early", cron="0 6 * * *"))
    town.create("late", definition(name="late", cron="0 9 * * *"))
    town.create("pulse", definition(name="pulse", cron="0 7 * * *", after_schedule_ids=("early", "late")))
    town.let_pass(at("07:30"))

    details = words.schedule_details(town.states["pulse"])

    assert "pulse-20261201T070000Z waiting (dependency), until 2026-12-02 00:00:00Z:" in details
    assert (
        "- early, due 2026-12-01 06:00:00Z: unknown since 2026-12-01 06:20:00Z, run early-20261201T060000Z" in details
    )
    assert "- late, due 2026-12-01 09:00:00Z: not due since 2026-12-01 07:00:00Z" in details
