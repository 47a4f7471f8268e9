"""What a run's own folder costs beside a bare exclusive `mkdir`, and what the index saves when runs are listed.

An allocation makes a number, an owner, a folder and its marker; a bare `mkdir` makes a name. Both are done in turn, in
rounds, in one directory by 1 and by 8 processes at once, on the disk of `--on` (default: here); the best round of each
counts. The ratios are of both as they are, without waiting for the disk. A worker does wait, once an allocation, so
that no power cut gives a number twice: what that costs beside a `mkdir` that is waited for is printed above.

    .venv/bin/python bench/folders.py
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

from domain.identity import RunIdentity
from domain.run import Origin, RunState
from evidence import documents, durable, folders, index

FOLDERS = 10_000
A_ROUND = 400
ROUNDS = 5
LISTINGS = 5
BEGAN = datetime(2027, 1, 1, tzinfo=UTC)


def allocate(storage: str, tag: str, count: int) -> None:
    for number in range(count):
        folders.allocate(Path(storage), "acme", "close", "sched", f"{tag}-{number}", lasting=False)


def bare_mkdir(storage: str, tag: str, count: int) -> None:
    for number in range(count):
        os.mkdir(f"{storage}/{tag}-{number}")


def allocate_and_wait(storage: str, tag: str, count: int) -> None:
    for number in range(count):
        folders.allocate(Path(storage), "acme", "close", "sched", f"{tag}-{number}")


def mkdir_and_wait(storage: str, tag: str, count: int) -> None:
    for number in range(count):
        os.mkdir(f"{storage}/{tag}-{number}")
        durable.sync(storage)


Work = Callable[[str, str, int], None]


def seconds(pool: ProcessPoolExecutor, processes: int, work: Work, storage: str, tag: str) -> float:
    """For A_ROUND calls, shared by the processes."""
    begun = perf_counter()
    parts = [pool.submit(work, storage, f"{tag}-{part}", A_ROUND // processes) for part in range(processes)]
    for part in parts:
        part.result()
    return perf_counter() - begun


def allocations(processes: int, storage: Path) -> float:
    """The time of bare `mkdir` over ours."""
    best = dict.fromkeys((allocate, bare_mkdir, allocate_and_wait, mkdir_and_wait), float("inf"))
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("forkserver")) as pool:
        for work in best:
            place = storage / work.__name__
            place.mkdir()
            seconds(pool, processes, work, str(place), "warm")
        for number in range(ROUNDS):
            for work in best:
                took = seconds(pool, processes, work, str(storage / work.__name__), f"round-{number}")
                best[work] = min(best[work], took)
    for work, took in best.items():
        print(f"{work.__name__:>17}, {processes} processes: {A_ROUND / took:10,.0f} a second")
    print(f"{'both waited for':>17}, {processes} processes: ratio {best[mkdir_and_wait] / best[allocate_and_wait]:.3f}")
    return best[bare_mkdir] / best[allocate]


def fill(runs: Path) -> None:
    """A pipeline's run folders, each with its description, and the index of them all."""
    for number in range(1, FOLDERS + 1):
        name, at = f"iteration-{number}-sched", BEGAN + timedelta(hours=number)
        identity = RunIdentity(
            run_kind="schedule",
            run_id=f"s4m2k7x3qh5ta-{at:%Y%m%dT%H%M%SZ}",
            workspace="acme",
            schedule_id="s4m2k7x3qh5ta",
            scheduled_for=at,
            trigger_source=Origin.CRON,
            execution_id=f"e-{number}",
            run_folder=name,
            plan_revision=1,
        )
        known = documents.RunMetadata(
            identity=identity, created_at=at, started_at=at, completed_at=at, status=RunState.SUCCEEDED
        )
        (runs / name).mkdir(parents=True)
        (runs / name / documents.METADATA).write_text(known.model_dump_json())
    index.change(runs, lambda entries: entries)


def milliseconds(work: Callable[[], object]) -> float:
    def once() -> float:
        begun = perf_counter()
        work()
        return (perf_counter() - begun) * 1000

    return median(once() for _ in range(LISTINGS))


def main() -> None:
    parser = argparse.ArgumentParser(description="Run folders beside bare mkdir, and listings with and without index.")
    parser.add_argument("--on", type=Path, default=Path.cwd(), help="a folder on the disk to measure")
    with tempfile.TemporaryDirectory(dir=parser.parse_args().on, prefix=".bench-folders-") as scratch:
        storage = Path(scratch)
        figures = {}
        for processes in (1, 8):
            place = storage / str(processes)
            place.mkdir()
            figures[f"ratio_{processes}"] = round(allocations(processes, place), 3)
        runs = storage / "runs"
        fill(runs)
        figures["index_list_ms"] = round(milliseconds(lambda: index.read(runs)), 1)
        figures["scan_list_ms"] = round(milliseconds(lambda: index.scan(runs)), 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
