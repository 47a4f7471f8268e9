"""A year in which nobody served a five-minute schedule: how many rows does it cost, and how long until it goes on?

The schedule's workflow waits on a real server with the state of a year ago, as after a year without workers; the
clock-skipping test server can't stand for that, because it does not skip while a workflow task waits for a worker.
`recover_s` is from the worker's start until the rows of the outage are in the database; `rows` are those rows.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table

from bench.servers import servers
from executors.registry import Registry
from tests.workflows.harness import Harness
from tests.workflows.probe import ProbeExecutor
from worker import wiring
from worker.settings import WorkerSettings

OUTAGE = timedelta(days=365)


async def measure() -> dict[str, float]:
    async with servers() as parts:
        probe = ProbeExecutor()
        harness = Harness(parts.client, parts.database, probe, "outage")
        woke = datetime.now(UTC)
        schedule = await harness.asleep_since(woke - OUTAGE, cron="*/5 * * * *", lateness_seconds=0)
        settings = WorkerSettings(database_url=parts.postgres.url, storage=parts.storage)
        entities, slots = wiring.workers(parts.client, parts.database, Registry({probe.name: probe}, {}), settings)
        began = time.monotonic()
        async with entities, slots:
            rows = [run for run in await harness.final(schedule) if not run.scheduled_for or run.scheduled_for <= woke]
            recovered = time.monotonic() - began
    show(sum(row.missed.count for row in rows if row.missed), len(rows), recovered)
    return {"rows": len(rows), "recover_s": round(recovered, 3)}


def show(missed: int, rows: int, seconds: float) -> None:
    table = Table("occurrences missed", "rows", "recovered after", title="A year's outage of a five-minute schedule")
    table.add_row(f"{missed:,}", str(rows), f"{seconds:.2f} s")
    Console().print(table)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
