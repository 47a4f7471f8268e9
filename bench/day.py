"""A day of one five-minute schedule whose lane is held for the first six hours, under each collision policy.

What becomes of the 288 occurrences is worked out with the product's own decisions on a simulated clock: a run
takes two minutes, and an occurrence is not worth starting two hours after it was due. Beside it, as many
requests go to a real lane that is held all the while: how long its history gets, over all its renewals.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table

from bench.servers import Servers, servers
from domain.lane import Lane, LaneDecision, LaneEntry, Launch, arrive, next_wake, released, tick
from domain.run import Origin, Run, RunState
from domain.schedule import CollisionPolicy
from executors.registry import Registry
from tests.workflows.harness import Harness
from tests.workflows.probe import ProbeExecutor
from tests.workflows.requests import LaneDesk
from worker import wiring
from worker.settings import WorkerSettings

START = datetime(2026, 12, 1, tzinfo=UTC)
STEP = timedelta(minutes=5)
OCCURRENCES = 288
HELD = timedelta(hours=6)
RUN_TAKES = timedelta(minutes=2)
WORTH_STARTING = timedelta(hours=2)


def occurrence(schedule: str, at: datetime, policy: CollisionPolicy) -> LaneEntry:
    run = Run(
        run_id=f"{schedule}-{at:%Y%m%dT%H%M%SZ}",
        workspace="day",
        schedule_id=schedule,
        schedule_name=schedule,
        schedule_revision=1,
        origin=Origin.CRON,
        scheduled_for=at,
        reference_time=at,
        reference_zone="UTC",
        executor="probe",
        target="probe:a",
        state=RunState.QUEUED,
        recorded_at=at,
        changed_at=at,
        start_by=at + WORTH_STARTING,
    )
    launch = Launch(payload={}, lateness_seconds=600, execution_timeout_seconds=3600, heartbeat_seconds=30)
    return LaneEntry(run=run, launch=launch, policy=policy, priority=5)


class Day:
    """The lane on a clock that jumps from one thing to the next."""

    def __init__(self, policy: CollisionPolicy) -> None:
        self.policy = policy
        self.outcomes: Counter[str] = Counter()
        self._lane = arrive(Lane(), occurrence("holder", START, policy), START).lane
        self._free_at: datetime | None = START + HELD

    def lived(self) -> Counter[str]:
        for number in range(1, OCCURRENCES + 1):
            due = START + STEP * number
            self._until(due)
            self._take(arrive(self._lane, occurrence("five-minutes", due, self.policy), due), due)
        self._until(START + timedelta(days=2))
        return self.outcomes

    def _until(self, time: datetime) -> None:
        while (at := self._next()) is not None and at <= time:
            holder = self._lane.holder
            if holder is not None and self._free_at == at:
                self._take(released(self._lane, holder.run.run_id, at), at)
            else:
                self._take(tick(self._lane, at), at)

    def _next(self) -> datetime | None:
        ending = self._free_at if self._lane.holder is not None else None
        return min((at for at in (next_wake(self._lane), ending) if at is not None), default=None)

    def _take(self, decision: LaneDecision, at: datetime) -> None:
        self._lane = decision.lane
        self.outcomes.update(c.run.reason or "" for c in decision.changes if c.run.state is RunState.SKIPPED)
        if decision.started is not None:
            self.outcomes["run"] += 1
            self._free_at = at + RUN_TAKES


async def events_of_a_held_lane(parts: Servers, harness: Harness, policy: CollisionPolicy) -> tuple[int, int]:
    """The events of the lane's present history, and how often it was renewed, after a day's requests."""
    desk = LaneDesk(harness, target=f"probe:{policy}")
    held = await desk.request(desk.occurrence("holder", script="hold"))
    for number in range(1, OCCURRENCES + 1):
        await desk.request(desk.occurrence("five-minutes", number, policy=policy))
    harness.probe.release(held.run_id)
    await desk.free()
    description = await desk.handle.describe()
    return description.history_length, await desk.renewals()


async def measure() -> dict[str, dict[str, int]]:
    table = Table("policy", "run", "superseded", "folded", "expired", "overlap or busy", "events", "renewals")
    figures: dict[str, dict[str, int]] = {}
    async with servers() as parts:
        probe = ProbeExecutor()
        settings = WorkerSettings(database_url=parts.postgres.url, storage=parts.storage)
        entities, slots = wiring.workers(parts.client, parts.database, Registry({probe.name: probe}, {}), settings)
        async with entities, slots:
            for policy in CollisionPolicy:
                harness = Harness(parts.client, parts.database, probe, "day")
                lived = Day(policy).lived()
                events, renewals = await events_of_a_held_lane(parts, harness, policy)
                row = {
                    "run": lived["run"],
                    "superseded": lived["superseded"],
                    "folded": lived["coalesced"],
                    "expired": lived["expired"],
                    "skipped": lived["overlap"] + lived["busy"],
                    "events": events,
                    "renewals": renewals,
                }
                assert sum(row[name] for name in ("run", "superseded", "folded", "expired", "skipped")) == OCCURRENCES
                table.add_row(policy, *(str(figure) for figure in row.values()))
                figures[policy] = row
    Console().print(table)
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
