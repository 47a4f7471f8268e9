"""Almanac beside APScheduler: the same herd, the same database server, and the same kill -9 in its midst.

As many schedules as `--n` fall due at one instant and each starts one small program, which writes itself into a ledger.
When a third has started, the process that runs them is killed and started again at once. `p99_s` is from the instant to
the program's start. `doubled` are programs that were started twice. `lost` are occurrences that were neither started
nor reported: of a run that the kill cut off between its claim and its program Almanac says that nobody knows what
became of it, and does not start it again; those are `almanac_unknown`. What the peer does not start it does not report.

The peer is installed from PyPI, by pip, into a virtual environment of its own, which is removed afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles

from rich.console import Console
from rich.table import Table
from sqlalchemy import select

from bench import fleet
from bench.fleet import Ledger
from bench.servers import Servers, servers
from domain.run import FINAL_STATES, Run, RunState
from embedded.child import Child
from readmodel.tables import runs
from readmodel.workspaces import Workspaces

PEER = "apscheduler"
REQUIREMENTS = ("apscheduler>=3.11,<4", "sqlalchemy>=2", "psycopg[binary]>=3")
WORKSPACE = "peer"
HEARTBEAT_SECONDS = 5
WITHIN_SECONDS = 300.0
QUIET_SECONDS = 20.0
"""After so long without a start the peer is done."""
console = Console(stderr=True)


@dataclass(frozen=True)
class Outcome:
    p99: float
    lost: int
    doubled: int
    unknown: int = 0


async def measure(n: int) -> dict[str, float | str]:
    async with servers() as parts:
        python = await install(parts.folder / "peer")
        version = await output(python, "-c", f"from importlib.metadata import version; print(version('{PEER}'))")
        peer = await of_peer(parts, python, n)
        almanac = await of_almanac(parts, n)
    show(n, version, peer, almanac)
    return {
        "peer": PEER,
        "version": version,
        "peer_p99_s": round(peer.p99, 3),
        "almanac_p99_s": round(almanac.p99, 3),
        "peer_lost": peer.lost,
        "peer_doubled": peer.doubled,
        "almanac_lost": almanac.lost,
        "almanac_doubled": almanac.doubled,
        "almanac_unknown": almanac.unknown,
    }


async def install(folder: Path) -> str:
    """The Python of a new environment with the peer in it."""
    console.print("installing the peer")
    await output(sys.executable, "-m", "venv", str(folder))
    python = str(folder / "bin" / "python")
    await output(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS)
    return python


async def output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    text, _ = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)} ended with {process.returncode}"
    return text.decode().strip()


async def of_peer(parts: Servers, python: str, n: int) -> Outcome:
    folder = parts.folder / "peer-ledger"
    ledger = Ledger(folder)
    due = next_minute(20)
    url = parts.postgres.url.replace("+asyncpg", "+psycopg")
    script = str(Path(__file__).with_name("peer_worker.py"))
    arguments = (url, str(folder), str(n), str(due.timestamp()))
    await output(python, script, "create", *arguments)

    def child() -> Child:
        return Child([python, script, "serve", *arguments], log=parts.folder / "peer.log", cwd=parts.folder)

    second = await killed_midway(child, ledger, n, due)
    await until_quiet(ledger, n)
    second.kill()
    await second.wait()
    starts = ledger.starts()
    return Outcome(p99(ledger, due), lost=n - len(starts), doubled=sum(starts.values()) - len(starts))


async def of_almanac(parts: Servers, n: int) -> Outcome:
    await Workspaces(parts.database).ensure(WORKSPACE)
    ledger = Ledger(parts.folder / "ledger")
    await fleet.many(lambda number: fleet.release_pipeline(parts, WORKSPACE, number, ledger.command(number)), n)
    settings = {"almanac_max_concurrent_runs": str(n), "almanac_heartbeat_interval_seconds": str(HEARTBEAT_SECONDS)}
    async with parts.worker("-m", "worker", **settings):
        due = next_minute(10 + n / 15)
        cron = f"{due.minute} {due.hour} * * *"
        await fleet.many(lambda number: fleet.create_schedule(parts, WORKSPACE, number, cron), n)
    second = await killed_midway(lambda: parts.child("-m", "worker", **settings), ledger, n, due)
    ended = await until_final(parts, n)
    second.kill()
    await second.wait()
    starts = ledger.starts()
    unstarted = [run for run in ended if starts[int((run.schedule_id or "").removeprefix("s"))] == 0]
    unknown = sum(1 for run in unstarted if run.state is RunState.UNKNOWN)
    lost = n - len(ended) + sum(1 for run in unstarted if run.state is RunState.SUCCEEDED)
    return Outcome(p99(ledger, due), lost, sum(starts.values()) - len(starts), unknown)


async def killed_midway(child: Callable[[], Child], ledger: Ledger, n: int, due: datetime) -> Child:
    """The second of two processes: the first is killed when a third of the programs has started."""
    first = child()
    await first.start()
    assert datetime.now(UTC) < due, "the schedules were not created in time"
    await until(lambda: len(ledger.starts()) >= n / 3)
    first.kill()
    await first.wait()
    console.print(f"killed with {len(ledger.starts())} of {n} started")
    second = child()
    await second.start()
    return second


async def until_quiet(ledger: Ledger, n: int) -> None:
    last = (0, time.monotonic())
    while len(ledger.starts()) < n and time.monotonic() < last[1] + QUIET_SECONDS:
        count = sum(ledger.starts().values())
        if count > last[0]:
            last = (count, time.monotonic())
        await asyncio.sleep(0.2)


async def until_final(parts: Servers, n: int) -> list[Run]:
    """The runs that have ended, once all have or nothing more is to be waited for."""
    ended = select(runs.c.record).where(runs.c.workspace == WORKSPACE, runs.c.state.in_(FINAL_STATES))
    end = time.monotonic() + WITHIN_SECONDS
    while True:
        async with parts.database.reading() as connection:
            found = [Run.model_validate(row) for row in (await connection.execute(ended)).scalars()]
        if len(found) >= n or time.monotonic() > end:
            return found
        await asyncio.sleep(0.5)


async def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < end, "the herd has not started in time"
        await asyncio.sleep(0.02)


def next_minute(ahead_seconds: float) -> datetime:
    ready = datetime.now(UTC) + timedelta(seconds=ahead_seconds)
    return (ready + timedelta(minutes=1)).replace(second=0, microsecond=0)


def p99(ledger: Ledger, due: datetime) -> float:
    lateness = [at - due.timestamp() for at in ledger.times()]
    return quantiles(lateness, n=100, method="inclusive")[98]


def show(n: int, version: str, peer: Outcome, almanac: Outcome) -> None:
    table = Table(
        "", "p99 lateness", "lost", "doubled", "reported unknown", title=f"{n} due at one instant, and a kill"
    )
    for name, outcome in ((f"{PEER} {version}", peer), ("Almanac", almanac)):
        figures = (str(outcome.lost), str(outcome.doubled), str(outcome.unknown))
        table.add_row(name, f"{outcome.p99:.2f} s", *figures)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100)
    print(json.dumps(asyncio.run(measure(parser.parse_args().n))))
