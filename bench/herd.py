"""Many schedules due at one instant: how late do they start?

Lateness is from the nominal instant to the first line of the first step. Beside it, on the same server in the
same run, as many of Temporal's own Schedules start a workflow of one empty activity, with both of Temporal's
schedule engines; the better of the two is what Almanac is compared with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles

from rich.console import Console
from rich.table import Table
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleRange,
    ScheduleSpec,
)

from bench import fleet, native_worker
from bench.servers import CHASM, Servers, servers
from domain import ids
from domain.errors import NotFound
from domain.run import Run
from readmodel.queries import Queries
from readmodel.workspaces import Workspaces

WORKSPACE = "herd"
console = Console(stderr=True)


@dataclass(frozen=True)
class Lateness:
    name: str
    seconds: list[float]

    def percentile(self, percent: int) -> float:
        return quantiles(self.seconds, n=100, method="inclusive")[percent - 1]


async def measure(n: int) -> dict[str, float]:
    async with servers() as parts:
        default = await native("Temporal Schedules, default engine", parts, n)
        almanac, workflow_tasks, events = await herd(parts, n)
    async with servers(CHASM) as parts:
        newer = await native("Temporal Schedules, newer engine", parts, n)
    show(n, [almanac, default, newer])
    best = min((default, newer), key=lambda lateness: lateness.percentile(99))
    return {
        "n": n,
        "almanac_p50_s": round(almanac.percentile(50), 3),
        "almanac_p99_s": round(almanac.percentile(99), 3),
        "native_p50_s": round(best.percentile(50), 3),
        "native_p99_s": round(best.percentile(99), 3),
        "ratio_p99": round(almanac.percentile(99) / best.percentile(99), 2),
        "workflow_tasks_per_occurrence": workflow_tasks,
        "events_per_occurrence": events,
    }


async def native(name: str, parts: Servers, n: int) -> Lateness:
    stamps = parts.folder / "stamps"
    stamps.mkdir()
    async with parts.worker("-m", "bench.native_worker", native_stamps=str(stamps)):
        due = next_minute(n)
        console.print(f"{name}: {n} due at {due:%H:%M:%S}")

        async def create(number: int) -> None:
            action = ScheduleActionStartWorkflow("native", id=f"native-{number}", task_queue=native_worker.TASK_QUEUE)
            calendar = ScheduleCalendarSpec(hour=[ScheduleRange(due.hour)], minute=[ScheduleRange(due.minute)])
            await parts.client.create_schedule(
                f"native-{number}", Schedule(action=action, spec=ScheduleSpec(calendars=[calendar]))
            )

        await fleet.many(create, n)
        found = await all_of(lambda: [path.read_text() for path in stamps.iterdir()], n, due)
    return Lateness(name, [float(text) - due.timestamp() for text in found])


async def herd(parts: Servers, n: int) -> tuple[Lateness, float, float]:
    await Workspaces(parts.database).ensure(WORKSPACE)
    async with parts.worker("-m", "worker", almanac_max_concurrent_runs=str(n)):
        due = next_minute(n)
        console.print(f"Almanac: {n} due at {due:%H:%M:%S}")
        await fleet.many(lambda number: create_schedule(parts, number, due), n)
        found = await all_of(lambda: first_lines(parts.storage), n, due)
        await all_ended(parts, n, due)
        tasks, events = await cost(parts, n, due)
    return Lateness("Almanac", [float(text) - due.timestamp() for text in found]), tasks, events


async def create_schedule(parts: Servers, number: int, due: datetime) -> None:
    await fleet.release_pipeline(parts, WORKSPACE, number, ("date", "+%s.%N"))
    await fleet.create_schedule(parts, WORKSPACE, number, f"{due.minute} {due.hour} * * *")


def first_lines(storage: Path) -> list[str]:
    logs = storage.glob(f"{WORKSPACE}/herd/*/runs/iteration-1-sched/steps/only/stdout.log")
    return [text for text in (log.read_text() for log in logs) if text.endswith("\n")]


async def cost(parts: Servers, n: int, due: datetime) -> tuple[float, float]:
    """Workflow tasks and history events of one occurrence, over the schedule, its lane and its run; the mean of a
    few. Of the schedule's history only what came since it was due."""
    measured = range(min(n, 20))
    tasks = events = 0
    for number in measured:
        for workflow_id in (
            ids.schedule_workflow_id(WORKSPACE, fleet.schedule_id(number)),
            ids.lane_workflow_id(WORKSPACE, fleet.target(WORKSPACE, number)),
            ids.run_workflow_id(WORKSPACE, ids.occurrence_run_id(fleet.schedule_id(number), due)),
        ):
            names = await events_since(parts, workflow_id, due)
            tasks += names.count("workflow_task_completed_event_attributes")
            events += len(names)
    return round(tasks / len(measured), 1), round(events / len(measured), 1)


async def events_since(parts: Servers, workflow_id: str, due: datetime) -> list[str]:
    handle = parts.client.get_workflow_handle(workflow_id)
    return [
        event.WhichOneof("attributes") or ""
        async for event in handle.fetch_history_events()
        if event.event_time.ToDatetime(UTC) >= due
    ]


async def all_ended(parts: Servers, n: int, due: datetime) -> None:
    until = time.monotonic() + 120
    while sum([run.is_final async for run in runs_of(parts, n, due)]) < n:
        assert time.monotonic() < until, "not all runs ended within two minutes"
        await asyncio.sleep(0.5)


async def runs_of(parts: Servers, n: int, due: datetime) -> AsyncIterator[Run]:
    for number in range(n):
        with suppress(NotFound):
            yield await Queries(parts.database).run(WORKSPACE, ids.occurrence_run_id(fleet.schedule_id(number), due))


def next_minute(n: int) -> datetime:
    """Far enough ahead for `n` schedules to be created."""
    ready = datetime.now(UTC) + timedelta(seconds=10 + n / 15)
    return (ready + timedelta(minutes=1)).replace(second=0, microsecond=0)


async def all_of(look: Callable[[], list[str]], n: int, due: datetime) -> list[str]:
    assert datetime.now(UTC) < due, "the schedules were not created in time"
    await asyncio.sleep((due - datetime.now(UTC)).total_seconds())
    until = time.monotonic() + 120
    while len(found := look()) < n:
        assert time.monotonic() < until, f"only {len(found)} of {n} started within two minutes"
        await asyncio.sleep(0.5)
    return found


def show(n: int, measured: list[Lateness]) -> None:
    table = Table("", "p50", "p99", "max", title=f"{n} due at one instant: start lateness in seconds")
    for lateness in measured:
        figures = (lateness.percentile(50), lateness.percentile(99), max(lateness.seconds))
        table.add_row(lateness.name, *(f"{figure:.3f}" for figure in figures))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300)
    print(json.dumps(asyncio.run(measure(parser.parse_args().n))))
