"""Tables on terminals of any width."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from cli import tables
from domain.run import Origin, Run, RunState, TrailRow

NOW = datetime(2027, 3, 14, 12, 0, tzinfo=UTC)
RUN = Run(
    run_id="s4m2k7x3qh5ta-20270314T070000Z",
    workspace="desk",
    schedule_id="s4m2k7x3qh5ta",
    schedule_name="finance/daily",
    schedule_revision=3,
    origin=Origin.CRON,
    scheduled_for=NOW - timedelta(hours=5),
    reference_time=NOW - timedelta(hours=5),
    reference_zone="America/New_York",
    executor="pipeline",
    target="pipeline:finance/daily",
    state=RunState.NOT_STARTED,
    reason="pointer_null",
    recorded_at=NOW - timedelta(hours=5),
    changed_at=NOW - timedelta(minutes=7),
)


def printed(table: object, width: int, *, colour: bool = False) -> str:
    console = Console(width=width, force_terminal=colour, color_system="standard" if colour else None)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


@pytest.mark.parametrize("width", [80, 100, 120, 150, 200])
def test_what_is_there_to_be_copied_is_never_cut(width: int) -> None:
    text = printed(tables.runs([RUN], NOW), width)

    assert RUN.run_id in text
    assert str(RUN.schedule_name) in text
    assert "not_started (pointer_null)" in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_wide_terminal_shows_local_time_and_utc_and_age() -> None:
    text = printed(tables.runs([RUN], NOW), 200)

    for part in ("Sun 2027-03-14 03:00 -04:00", "2027-03-14 07:00Z", "7 min ago", "cron"):
        assert part in text


def test_a_long_message_goes_on_in_the_next_line() -> None:
    row = TrailRow(run_id="r", seq=1, at=NOW, kind="finished", state=RunState.FAILED, message="a long story " * 9)

    text = printed(tables.trail([row], "UTC"), 80)

    assert "…" not in text
    assert text.count("story") == 9


@pytest.mark.parametrize("state", list(RunState))
def test_every_state_has_a_colour(state: RunState) -> None:
    assert "\x1b[" in printed(tables.state(RUN.model_copy(update={"state": state})), 80, colour=True)
