"""What waits for the database while it is away: in little room, without loss, and never too much for one payload."""

from __future__ import annotations

from datetime import timedelta

from domain import outbox, schedule_acts, schedule_runs, schedule_state
from domain.events import Event, RunChanged
from domain.run import Origin, Run, RunState
from domain.schedule_state import REMEMBERED_REQUESTS, ScheduleState
from tests.domain.builders import NOON, at
from tests.domain.life import BY, Life, ended

PAYLOAD_LIMIT = 2 * 1024 * 1024
"""Temporal's, for one payload. A workflow's state is one."""


class Cut(Life):
    """A life of which the database hears nothing: events stay, only letters are delivered."""

    def _deliver(self) -> None:
        state = schedule_state.announced(self.state) if self.state.outbox else self.state
        self.state = state.but(mail=(), letters=(), seq=0)


def untold(state: ScheduleState) -> list[Event]:
    return [event for bundle in state.bundles for event in outbox.unpack(bundle)] + list(state.outbox)


def days_without_database(life: Cut, days: int) -> int:
    """Each occurrence runs as far as it can without a database. Answers how many there were."""
    count = 0
    until = life.now + timedelta(days=days)
    while (planned := life.state.next_planned) is not None and planned.at <= until:
        life.wake(planned.at)
        for open_run in life.state.open_runs:
            message = "The database did not answer in time, so nothing was started."
            change = ended(open_run.run, RunState.NOT_STARTED, life.now, "record_unwritable")
            change = change.model_copy(update={"run": change.run.model_copy(update={"message": message})})
            life.take(schedule_runs.run_reported(life.state, (change,), life.now))
            count += 1
    return count


def test_bundles_lose_nothing_and_take_a_fraction_of_the_room() -> None:
    life = Life(at("00:00"), cron="*/5 * * * *")
    changes = tuple(RunChanged(change=ended(run, RunState.SUCCEEDED, NOON)) for run in _runs(life, 300))
    bundles, rest = outbox.bundled(changes)
    assert tuple(event for bundle in bundles for event in outbox.unpack(bundle)) + rest == changes
    assert sum(bundle.count for bundle in bundles) == 2 * outbox.BUNDLE
    assert len(rest) >= outbox.LEFT_OPEN
    assert all(len(bundle.data) * 10 < bundle.size for bundle in bundles)


def test_few_events_stay_as_they_are() -> None:
    changes = tuple(
        RunChanged(change=ended(run, RunState.SUCCEEDED, NOON))
        for run in _runs(Life(at("00:00")), outbox.BUNDLE + outbox.LEFT_OPEN)
    )
    assert outbox.bundled(changes) == ((), changes)


def test_days_without_a_database_fit_into_one_payload_and_every_change_is_kept() -> None:
    life = Cut(at("00:00"), cron="*/5 * * * *")
    count = days_without_database(life, 5)
    assert count == 5 * 288
    changes = [event.change for event in untold(life.state) if isinstance(event, RunChanged)]
    assert len(changes) == 2 * count
    assert len({(change.trail.run_id, change.trail.seq) for change in changes}) == 2 * count
    assert len(life.state.model_dump_json()) < PAYLOAD_LIMIT / 4
    assert ScheduleState.model_validate_json(life.state.model_dump_json()) == life.state


def test_a_month_without_a_database_stops_firing_in_time_and_counts_the_rest_afterwards() -> None:
    life = Cut(at("00:00"), cron="*/5 * * * *")
    for number in range(REMEMBERED_REQUESTS):
        life.state, _ = schedule_acts.run_now(life.state, f"key-{number}", BY, life.now)
    life.state = life.state.but(open_runs=())
    fired = days_without_database(life, 30)
    assert life.state.is_congested
    assert fired < 30 * 288
    assert len(life.state.model_dump_json()) < PAYLOAD_LIMIT
    life.wake(NOON + timedelta(days=30))
    assert life.next is None
    life.take(life.state.but(bundles=(), outbox=()))
    rows = [e.change.run for e in untold(life.state) if isinstance(e, RunChanged)]
    (summary,) = (run.missed for run in rows if run.missed is not None)
    latest = [run for run in rows if run.scheduled_for]
    minutes = round((life.now - at("00:00")).total_seconds() / 60)
    assert fired + summary.count + len(latest) == minutes // 5


def _runs(life: Life, count: int) -> list[Run]:
    return [
        schedule_state.new_run(
            life.state,
            f"s1-{number}",
            Origin.CRON,
            NOON + timedelta(minutes=5 * number),
            reference_time=NOON + timedelta(minutes=5 * number),
            scheduled_for=NOON + timedelta(minutes=5 * number),
            start_by=NOON + timedelta(days=1),
        )
        for number in range(count)
    ]
