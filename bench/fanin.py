"""One schedule that waits for many parents: how long after the last parent's end is it released, and what does waiting
cost as the parents grow?

The release is the dependent's own trail row; the end is the last parent's, as its run has it. Dependents of fewer
parents wait beside it, so that the cost of one occurrence can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import quantiles

from rich.console import Console
from rich.table import Table
from temporalio.client import WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy

from bench.fleet import many
from bench.servers import Servers, servers
from domain import ids, messages
from domain.messages import CreateSchedule, ScheduleInput
from domain.pipeline import PipelineDefinition, Step
from domain.run import Run
from domain.schedule import ScheduleDefinition
from readmodel.pipelines import Pipelines
from readmodel.queries import Queries
from readmodel.workspaces import Workspaces

WORKSPACE = "fanin"
PERIOD = timedelta(minutes=2)
WITHIN = 240
"""Seconds that a round may take."""
UNRENEWED = 1_000_000
"""A history limit that is not reached, so that all rounds are in one history."""

console = Console(stderr=True)


@dataclass(frozen=True)
class Cost:
    """Of one occurrence of a dependent, the mean over the rounds."""

    parents: int
    workflow_tasks: float
    signals: float


async def measure(parents: int, rounds: int) -> dict[str, float]:
    sizes = sorted({size for size in (1, 10, 50) if size < parents} | {parents})
    async with servers() as parts:
        await Workspaces(parts.database).ensure(WORKSPACE)
        await many(lambda number: pipeline(parts, f"p{number}"), parents)
        await many(lambda number: pipeline(parts, f"d{sizes[number]}"), len(sizes))
        async with parts.worker("-m", "worker", almanac_max_concurrent_runs="16"):
            first = next_round(parents)
            console.print(f"{parents} parents, {rounds} rounds from {first:%H:%M:%S}")
            await many(lambda number: create(parts, f"p{number}", ()), parents)
            for size in sizes:
                await create(parts, f"d{size}", tuple(f"p{number}" for number in range(size)))
            assert datetime.now(UTC) < first, "the schedules were not created in time"
            dues = [first + number * PERIOD for number in range(rounds)]
            latencies = [await latency(parts, f"d{parents}", due) for due in dues]
            costs = [await cost(parts, size, dues) for size in sizes]
    show(latencies, costs)
    p50, p99 = (percentile(latencies, percent) for percent in (50, 99))
    return {
        "parents": parents,
        "release_p50_s": round(p50, 3),
        "release_p99_s": round(p99, 3),
        "workflow_tasks": costs[-1].workflow_tasks,
        "signals": costs[-1].signals,
    }


async def pipeline(parts: Servers, name: str) -> None:
    pipelines = Pipelines(parts.database)
    definition = PipelineDefinition(name=name, steps=(Step(id="only", command=("true",)),))
    await pipelines.save(WORKSPACE, definition, "bench")
    await pipelines.release(WORKSPACE, name, "bench")


async def create(parts: Servers, name: str, after: tuple[str, ...]) -> None:
    definition = ScheduleDefinition(
        name=name,
        cron=f"*/{PERIOD.seconds // 60} * * * *",
        timezone="UTC",
        payload={"pipeline": name, "version": "current"},
        after_schedule_ids=after or None,
    )
    await parts.client.execute_update_with_start_workflow(
        messages.CREATE_UPDATE,
        CreateSchedule(definition=definition, target=f"pipeline:{name}", by="bench"),
        start_workflow_operation=WithStartWorkflowOperation(
            messages.SCHEDULE_WORKFLOW,
            ScheduleInput(workspace=WORKSPACE, schedule_id=name, history_limit=UNRENEWED),
            id=ids.schedule_workflow_id(WORKSPACE, name),
            task_queue=messages.TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        ),
    )


def next_round(parents: int) -> datetime:
    """Far enough ahead for the schedules to be created."""
    ready = datetime.now(UTC) + timedelta(seconds=10 + parents / 10)
    period = PERIOD.total_seconds()
    return datetime.fromtimestamp((ready.timestamp() // period + 1) * period, UTC)


async def latency(parts: Servers, dependent: str, due: datetime) -> float:
    """From the last parent's end to the release of the dependent's occurrence, once that has ended."""
    run_id = ids.occurrence_run_id(dependent, due)
    await asyncio.sleep(max((due - datetime.now(UTC)).total_seconds(), 0))
    run = await ended(parts, run_id)
    trail = await Queries(parts.database).trail(WORKSPACE, run_id)
    released = next(row.at for row in trail if row.kind == "released")
    ends = [
        (await Queries(parts.database).run(WORKSPACE, parent.run_id)).ended_at
        for parent in run.waits_for
        if parent.run_id is not None
    ]
    last = max(end for end in ends if end is not None)
    console.print(f"{due:%H:%M}: last end {last:%H:%M:%S}, released {(released - last).total_seconds():.3f} s later")
    return (released - last).total_seconds()


async def ended(parts: Servers, run_id: str) -> Run:
    until = time.monotonic() + WITHIN
    while True:
        page = await Queries(parts.database).runs(WORKSPACE, schedule_id=run_id.rsplit("-", 1)[0])
        run = next((run for run in page.items if run.run_id == run_id and run.is_final), None)
        if run is not None:
            return run
        waits = Counter((p.status.value, p.run_state, p.reason) for r in page.items for p in r.waits_for)
        assert time.monotonic() < until, f"{run_id} has not ended in time; its parents: {waits}"
        await asyncio.sleep(0.5)


async def cost(parts: Servers, size: int, dues: list[datetime]) -> Cost:
    """What the dependent's own workflow took from the first round to the end of the last."""
    handle = parts.client.get_workflow_handle(ids.schedule_workflow_id(WORKSPACE, f"d{size}"))
    counted: Counter[str] = Counter()
    async for event in handle.fetch_history_events():
        if dues[0] <= event.event_time.ToDatetime(UTC) < dues[-1] + PERIOD:
            counted[event.WhichOneof("attributes") or ""] += 1
    return Cost(
        size,
        round(counted["workflow_task_completed_event_attributes"] / len(dues), 1),
        round(counted["workflow_execution_signaled_event_attributes"] / len(dues), 1),
    )


def percentile(seconds: list[float], percent: int) -> float:
    return seconds[0] if len(seconds) == 1 else quantiles(seconds, n=100, method="inclusive")[percent - 1]


def show(latencies: list[float], costs: list[Cost]) -> None:
    console.print("release after the last end, in seconds:", ", ".join(f"{each:.3f}" for each in latencies))
    table = Table("parents", "workflow tasks", "signals", title="One occurrence of a dependent")
    for each in costs:
        table.add_row(str(each.parents), str(each.workflow_tasks), str(each.signals))
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parents", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.parents, given.rounds))))
