"""What many schedules cost while nothing is due: memory and CPU of the one worker that has them all at hand.

`start_s` is how long a new worker takes until it answers for one of them; `idle_cpu_pct` is of one core, over a
while in which nothing falls due.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

import psutil
from rich.console import Console
from rich.table import Table

from bench import fleet
from bench.servers import Servers, servers
from domain import ids
from readmodel.workspaces import Workspaces

WORKSPACE = "scale"
SETTLE_SECONDS = 15.0
OBSERVED_SECONDS = 60.0
FAR = timedelta(hours=12)


async def measure(n: int) -> dict[str, float]:
    async with servers() as parts:
        await Workspaces(parts.database).ensure(WORKSPACE)
        async with parts.worker("-m", "worker") as child:
            created = await create(parts, n)
            await asyncio.sleep(SETTLE_SECONDS)
            assert child.pid is not None
            process = psutil.Process(child.pid)
            before = cpu_seconds(process)
            await asyncio.sleep(OBSERVED_SECONDS)
            idle = 100 * (cpu_seconds(process) - before) / OBSERVED_SECONDS
            memory = process.memory_info().rss / 2**20
        start = await answered_after_start(parts)
    show(n, memory, idle, created, start)
    return {
        "schedules": n,
        "worker_rss_mb": round(memory),
        "idle_cpu_pct": round(idle, 2),
        "start_s": round(start, 2),
        "create_per_s": round(n / created, 1),
    }


async def create(parts: Servers, n: int) -> float:
    """How many seconds it took."""
    due = datetime.now(UTC) + FAR
    began = time.monotonic()
    await fleet.many(
        lambda number: fleet.create_schedule(parts, WORKSPACE, number, f"{due.minute} {due.hour} * * *"), n
    )
    return time.monotonic() - began


async def answered_after_start(parts: Servers) -> float:
    """The process's own start included."""
    began = time.monotonic()
    async with parts.worker("-m", "worker"):
        handle = parts.client.get_workflow_handle(ids.schedule_workflow_id(WORKSPACE, fleet.schedule_id(0)))
        await handle.query("schedule")
        return time.monotonic() - began


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def show(n: int, memory: float, idle: float, created: float, start: float) -> None:
    table = Table("worker memory", "CPU at rest", "created", "a new worker answers", title=f"{n:,} schedules")
    table.add_row(f"{memory:,.0f} MB", f"{idle:.2f} %", f"{n / created:.0f} a second", f"after {start:.1f} s")
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    print(json.dumps(asyncio.run(measure(parser.parse_args().schedules))))
