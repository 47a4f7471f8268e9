"""Many five-minute schedules after an hour in which no worker ran: how long until all is dealt with, and is it right?

Each schedule's workflow waits on a real server with the state of an hour ago. `caught_up_s` is from the worker's start
until the latest occurrence of each has been executed and its end is in the database. By the default policy that
occurrence is the only one that runs; the others are one row that counts them. `lost` are occurrences of the hour
that no row accounts for, or whose run did not start its program; `doubled` are those that two rows account for, and
programs started twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

from bench import fleet
from bench.fleet import Ledger
from bench.servers import Servers, servers
from domain.run import FINAL_STATES, Run
from readmodel.tables import runs
from readmodel.workspaces import Workspaces

WORKSPACE = "catchup"
OUTAGE = timedelta(hours=1)
EVERY = timedelta(minutes=5)
WITHIN_SECONDS = 600.0


async def measure(n: int) -> dict[str, float]:
    async with servers() as parts:
        await Workspaces(parts.database).ensure(WORKSPACE)
        ledger = Ledger(parts.folder / "ledger")
        await fleet.many(lambda number: fleet.release_pipeline(parts, WORKSPACE, number, ledger.command(number)), n)
        woke = datetime.now(UTC)
        # The latest occurrence was a minute ago at most, so that the next one does not fall into the measurement.
        cron = f"{woke.minute % 5}-59/5 * * * *"
        since = woke - OUTAGE
        await fleet.many(lambda number: fleet.leave_asleep(parts, WORKSPACE, number, cron, since), n)
        due = occurrences(since, woke)
        began = time.monotonic()
        async with parts.worker("-m", "worker", almanac_max_concurrent_runs=str(min(n, 200))):
            await until_ended(parts, n, due[-1])
            seconds = time.monotonic() - began
            found = await accounts(parts, n, due, ledger)
    show(n, len(due), seconds, found)
    return {"schedules": n, "caught_up_s": round(seconds, 1), "lost": found.lost, "doubled": found.doubled}


@dataclass(frozen=True)
class Account:
    lost: int
    doubled: int


def occurrences(since: datetime, until: datetime) -> list[datetime]:
    """Every fifth minute in between, counted backwards; by arithmetic of its own."""
    latest = until.replace(second=0, microsecond=0)
    return sorted(at for step in range(OUTAGE // EVERY + 1) if since < (at := latest - step * EVERY) <= until)


async def until_ended(parts: Servers, n: int, latest: datetime) -> None:
    ended = (
        select(func.count())
        .select_from(runs)
        .where(
            runs.c.workspace == WORKSPACE,
            runs.c.state.in_(FINAL_STATES),
            runs.c.run_id.endswith(f"{latest:%Y%m%dT%H%M%SZ}"),
        )
    )
    until = time.monotonic() + WITHIN_SECONDS
    while True:
        async with parts.database.reading() as connection:
            count = await connection.scalar(ended) or 0
        if count >= n:
            return
        assert time.monotonic() < until, f"only {count} of {n} had ended after {WITHIN_SECONDS:.0f} s"
        await asyncio.sleep(0.2)


async def accounts(parts: Servers, n: int, due: list[datetime], ledger: Ledger) -> Account:
    """Of all schedules together."""
    async with parts.database.reading() as connection:
        rows = (await connection.execute(select(runs.c.record).where(runs.c.workspace == WORKSPACE))).scalars()
        recorded = [Run.model_validate(row) for row in rows]
    starts = ledger.starts()
    mine: dict[str, list[Run]] = {}
    for run in recorded:
        if run.schedule_id is not None:
            mine.setdefault(run.schedule_id, []).append(run)
    each = [account(mine.get(fleet.schedule_id(number), []), due, starts[number]) for number in range(n)]
    return Account(sum(one.lost for one in each), sum(one.doubled for one in each))


def account(recorded: list[Run], due: list[datetime], starts: int) -> Account:
    """What became of one schedule's occurrences, by its rows and by how often its program was started."""
    times = [sum(1 for run in recorded if accounts_for(run, at)) for at in due]
    executed = sum(1 for run in recorded if run.scheduled_for is not None)
    return Account(
        lost=times.count(0) + max(executed - starts, 0),
        doubled=sum(1 for count in times if count > 1) + max(starts - executed, 0),
    )


def accounts_for(run: Run, at: datetime) -> bool:
    if run.missed is not None:
        return run.missed.first <= at <= run.missed.last
    return run.scheduled_for == at


def show(n: int, missed: int, seconds: float, found: Account) -> None:
    table = Table("occurrences missed", "caught up after", "lost", "doubled", title=f"{n:,} schedules after an hour")
    table.add_row(f"{n * missed:,}", f"{seconds:.1f} s", str(found.lost), str(found.doubled))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    print(json.dumps(asyncio.run(measure(parser.parse_args().schedules))))
