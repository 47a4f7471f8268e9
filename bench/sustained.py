"""How many runs a second, one after another on each of some schedules, for as long as the measurement takes?

Each schedule is asked to run again as soon as its last run has ended, so that as many are always under way as there are
schedules. Beside it, on the same server in the same run, as many loops each start a workflow of one empty activity and
wait for its end. `ratio` is how many runs of Almanac there are for each of those workflows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.table import Table
from sqlalchemy import select

from bench import fleet, native_worker
from bench.servers import Servers, servers
from domain import ids, messages
from domain.messages import RunNow, RunNowAnswer
from domain.run import FINAL_STATES
from readmodel.tables import runs
from readmodel.workspaces import Workspaces

WORKSPACE = "sustained"
NEVER = "0 0 29 2 *"
WARM_UP_SECONDS = 5.0
LOOK_SECONDS = 0.1


async def measure(schedules: int, seconds: float) -> dict[str, float]:
    async with servers() as parts:
        (parts.folder / "stamps").mkdir()
        async with parts.worker("-m", "bench.native_worker", native_stamps=str(parts.folder / "stamps")):
            native = await rate(lambda number, count: start_native(parts, number, count), schedules, seconds)
        await Workspaces(parts.database).ensure(WORKSPACE)
        async with parts.worker("-m", "worker", almanac_max_concurrent_runs=str(schedules)):
            await fleet.many(lambda number: create(parts, number), schedules)
            async with Ends(parts) as ends:
                almanac = await rate(lambda number, count: run_now(parts, ends, number, count), schedules, seconds)
    show(schedules, seconds, almanac, native)
    return {
        "schedules": schedules,
        "seconds": seconds,
        "runs_per_s": round(almanac, 2),
        "native_per_s": round(native, 2),
        "ratio": round(almanac / native, 3),
    }


class Ends:
    """Who waits for the end of which run, as the database tells it: one look for all of them."""

    def __init__(self, parts: Servers) -> None:
        self._parts = parts
        self._waiting: dict[str, asyncio.Event] = {}

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._looking.cancel()
        with suppress(asyncio.CancelledError):
            await self._looking

    async def of(self, run_id: str) -> None:
        await self._waiting.setdefault(run_id, asyncio.Event()).wait()
        del self._waiting[run_id]

    async def _look(self) -> None:
        while True:
            asked = select(runs.c.run_id).where(runs.c.run_id.in_(list(self._waiting)), runs.c.state.in_(FINAL_STATES))
            async with self._parts.database.reading() as connection:
                for run_id in await connection.scalars(asked):
                    self._waiting[run_id].set()
            await asyncio.sleep(LOOK_SECONDS)


async def create(parts: Servers, number: int) -> None:
    await fleet.release_pipeline(parts, WORKSPACE, number, ("true",))
    await fleet.create_schedule(parts, WORKSPACE, number, NEVER)


async def run_now(parts: Servers, ends: Ends, number: int, count: int) -> None:
    key, schedule_id = str(count), fleet.schedule_id(number)
    handle = parts.client.get_workflow_handle(ids.schedule_workflow_id(WORKSPACE, schedule_id))
    answer = await handle.execute_update(
        messages.RUN_NOW_UPDATE, RunNow(key=key, by=fleet.BY), result_type=RunNowAnswer
    )
    await ends.of(answer.run.run_id)


async def start_native(parts: Servers, number: int, count: int) -> None:
    await parts.client.execute_workflow("native", id=f"native-{number}-{count}", task_queue=native_worker.TASK_QUEUE)


async def rate(do: Callable[[int, int], Awaitable[None]], loops: int, seconds: float) -> float:
    """How often a second `do(loop, count)` is done, all loops together, after a moment to warm up."""
    done: list[float] = []

    async def loop(number: int) -> None:
        count = 0
        while True:
            await do(number, count)
            done.append(time.monotonic())
            count += 1

    tasks = [asyncio.create_task(loop(number)) for number in range(loops)]
    await asyncio.sleep(WARM_UP_SECONDS)
    began = time.monotonic()
    failed, under_way = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    ended = time.monotonic()
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    for task in failed:
        await task
    return sum(1 for at in done if began <= at <= ended) / (ended - began)


def show(schedules: int, seconds: float, almanac: float, native: float) -> None:
    table = Table("", "a second", title=f"{schedules} at a time, for {seconds:.0f} seconds")
    table.add_row("runs of Almanac", f"{almanac:.1f}")
    table.add_row("workflows of one activity", f"{native:.1f}")
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.schedules, given.seconds))))
