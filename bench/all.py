"""Runs all benchmarks one after another and writes `docs/benchmarks.md` with its pictures.

    .venv/bin/python -m bench.all            about 45 minutes on two cores
    .venv/bin/python -m bench.all --quick    small herds, about 15 minutes; prints the page and leaves docs/ alone

Nothing else should run on the machine meanwhile: most figures are of two busy cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench import machine
from bench.pictures import Bar, bars

DOCS = Path(__file__).parents[1] / "docs"
LONGEST_SECONDS = 1800
Figures = Mapping[str, object]
console = Console(stderr=True)


@dataclass(frozen=True)
class Bench:
    module: str
    title: str
    meaning: str
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()

    def arguments(self, quick: bool) -> tuple[str, ...]:
        return self.quick if quick else self.full


HERD = "How late many schedules start that are due at one instant, beside as many of Temporal's own Schedules."
BENCHES = (
    Bench("herd", "A herd of 50", HERD, ("--n", "50"), ("--n", "20")),
    Bench("herd", "A herd of 300", HERD, ("--n", "300"), ("--n", "50")),
    Bench("herd", "A herd of 1,000", HERD, ("--n", "1000"), ("--n", "100")),
    Bench(
        "sustained",
        "One after another",
        "How many runs a second with 40 schedules that are always busy, beside as many loops of bare workflows.",
        (),
        ("--schedules", "10", "--seconds", "10"),
    ),
    Bench(
        "catchup",
        "After an hour without workers",
        "From the worker's start until the latest occurrence of each has ended and all others are accounted for.",
        ("--schedules", "1000"),
        ("--schedules", "50"),
    ),
    Bench(
        "scale",
        "Schedules at rest",
        "Memory and CPU (of one core) of the one worker that has them all at hand while nothing is due.",
        ("--schedules", "10000"),
        ("--schedules", "200"),
    ),
    Bench(
        "fanin",
        "Fan-in",
        "From the last parent's end to the release of the occurrence that waits for all of them.",
        ("--parents", "200"),
        ("--parents", "10", "--rounds", "1"),
    ),
    Bench(
        "peer",
        "Beside APScheduler",
        "The same herd, the same database server and the same kill -9 in its midst.",
        ("--n", "100"),
        ("--n", "30"),
    ),
    Bench("outage", "A year's outage of a five-minute schedule", "Rows in the database, and seconds until it goes on."),
    Bench("occurrences", "Occurrences", "How many times as fast as other libraries, for the same pattern and zone."),
    Bench("folders", "Run folders", "What an allocation costs beside a bare `mkdir`, by 1 and by 8 processes."),
)


PICTURES = {
    "benchmarks-herd.svg": "Start lateness of a herd, 99th percentile",
    "benchmarks-peer.svg": "A herd and a kill -9 in its midst, beside APScheduler",
}


@dataclass(frozen=True)
class Measured:
    bench: Bench
    arguments: tuple[str, ...]
    figures: Figures | None
    """None when it failed."""
    seconds: float


def run(bench: Bench, quick: bool) -> Measured:
    """In a process of its own; its last line is its figures."""
    arguments = bench.arguments(quick)
    command = [sys.executable, "-m", f"bench.{bench.module}", *arguments]
    console.print(f"[bold]{bench.title}[/bold]: {' '.join(command[1:])}")
    began = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LONGEST_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        console.print(f"failed: {error}")
        return Measured(bench, arguments, None, time.monotonic() - began)
    console.print(done.stdout)
    return Measured(bench, arguments, json.loads(done.stdout.splitlines()[-1]), time.monotonic() - began)


def page(measured: list[Measured]) -> str:
    total = sum(each.seconds for each in measured)
    lines = [
        "# Benchmarks",
        "",
        f"Written by `.venv/bin/python -m bench.all`, which took {total / 60:.0f} minutes. Each part can be run",
        "alone; its file in `bench/` says what is measured and how.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine.described().items()),
    ]
    for name, picture in PICTURES.items():
        if name in pictures(measured):
            lines += ["", f"![{picture}]({name})"]
    for each in measured:
        lines += ["", f"## {each.bench.title}", "", each.bench.meaning, "", *table(each)]
    return "\n".join(lines) + "\n"


def table(measured: Measured) -> list[str]:
    command = " ".join(("python -m", f"bench.{measured.bench.module}", *measured.arguments))
    if measured.figures is None:
        return [f"`{command}` failed."]
    rows = [f"| `{name}` | {shown(value)} |" for name, value in measured.figures.items()]
    return [f"`{command}`, {measured.seconds:.0f} s", "", "| figure | |", "|---|---|", *rows]


def shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def pictures(measured: list[Measured]) -> dict[str, str]:
    """File name to SVG, of what was measured."""
    herd: list[Bar] = []
    peer: list[Bar] = []
    for figures in (each.figures for each in measured if each.figures is not None):
        if "native_p99_s" in figures:
            herd.append(Bar(f"Almanac, {figures['n']}", number(figures["almanac_p99_s"])))
            herd.append(Bar(f"Temporal Schedules, {figures['n']}", number(figures["native_p99_s"]), 1))
        if "peer" in figures:
            for who, name in (("almanac", "Almanac"), ("peer", f"{figures['peer']} {figures['version']}")):
                colour = 0 if who == "almanac" else 2
                peer.append(Bar(f"{name}, lost", number(figures[f"{who}_lost"]), colour))
                peer.append(Bar(f"{name}, started twice", number(figures[f"{who}_doubled"]), colour))
    drawn = zip(PICTURES.items(), ((" s", herd), ("", peer)), strict=True)
    return {name: bars(title, unit, rows) for (name, title), (unit, rows) in drawn if rows}


def number(value: object) -> float:
    assert isinstance(value, int | float)
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes; leaves docs/ alone")
    quick = parser.parse_args().quick
    measured = [run(bench, quick) for bench in BENCHES]
    if quick:
        print(page(measured))
    else:
        (DOCS / "benchmarks.md").write_text(page(measured))
        for name, picture in pictures(measured).items():
            (DOCS / name).write_text(picture)
    console.print(f"all of it took {sum(each.seconds for each in measured) / 60:.1f} minutes")
    return 1 if any(each.figures is None for each in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
