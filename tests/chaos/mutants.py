"""Defects put into the product's worker while it runs, each of which the checker has to catch.

    python -m tests.chaos.mutants            runs all, a minute or two each, and prints a table; exit code 1 if one is
                                             not caught
    python -m tests.chaos.mutants NAME       is the worker process with that defect

Each replaces one decision by one that is wrong in the way that its name says.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

VARIABLE = "ALMANAC_CHAOS_MUTANT"
SECONDS = 100.0
SCHEDULES = 16


def replaced(owner: Any, name: str, by: Callable[..., Any]) -> None:
    """Fails where there is nothing of this name any more, so that no defect ends up without effect."""
    assert hasattr(owner, name), name
    setattr(owner, name, by)


def double_start() -> None:
    """What was claimed is launched twice."""
    from executors.pipeline import PipelineExecutor

    execute = PipelineExecutor.execute

    async def twice(self: Any, execution: Any, progress: Any) -> Any:
        await execute(self, execution, progress)
        return await execute(self, execution, progress)

    replaced(PipelineExecutor, "execute", twice)


def lost_pending() -> None:
    """What waits for a lane is forgotten, its row is not."""
    from domain import lane

    replaced(lane, "_with", lambda known, _entry: known)


def wrong_parent_date() -> None:
    """Dependents are matched with their parents' occurrences of the day before."""
    from domain import schedule_dependent, schedule_due
    from domain.dependency import Question

    def yesterday(**given: Any) -> Question:
        days = tuple(day - timedelta(days=1) for day in given.pop("dates"))
        return Question(**given, dates=days)

    replaced(schedule_due, "Question", yesterday)
    replaced(schedule_dependent, "Question", yesterday)


def early_lane_release() -> None:
    """Whoever arrives finds the lane free."""
    from domain import lane

    arrive = lane._arrive

    def as_if_free(known: lane.Lane, entry: lane.LaneEntry, now: datetime) -> lane.LaneDecision:
        return arrive(known.model_copy(update={"holder": None}), entry, now)

    replaced(lane, "_arrive", as_if_free)


def skipped_transition() -> None:
    """A run that waited is claimed without having been let go."""
    from domain import lane, run

    run.TRANSITIONS[run.RunState.WAITING] |= {run.RunState.STARTING, run.RunState.NOT_STARTED}

    def start(known: lane.Lane, entry: lane.LaneEntry, now: datetime) -> lane.LaneDecision:
        return lane.LaneDecision(lane=known.model_copy(update={"holder": entry}), started=entry)

    replaced(lane, "_start", start)


@dataclass(frozen=True)
class Mutant:
    defect: Callable[[], None]
    caught_by: frozenset[str]


MUTANTS = {
    "double_start": Mutant(double_start, frozenset({"executed_once"})),
    "lost_pending": Mutant(lost_pending, frozenset({"all_ended"})),
    "wrong_parent_date": Mutant(wrong_parent_date, frozenset({"parents_first"})),
    "early_lane_release": Mutant(early_lane_release, frozenset({"lanes_exclusive"})),
    "skipped_transition": Mutant(skipped_transition, frozenset({"trails_legal"})),
}


def worker() -> int:
    """The worker with the defect that its environment names."""
    from worker.__main__ import main

    MUTANTS[os.environ[VARIABLE]].defect()
    return main()


async def caught(name: str, seed: int) -> dict[str, int]:
    """How many violations of each kind a run with the defect has."""
    from tests.chaos import drive
    from tests.chaos.plan import Size

    size = Size(SECONDS, SCHEDULES, act_every=1.5, blow_every=25.0)
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="almanac-mutant-") as folder:
        told: list[str] = []
        with contextlib.redirect_stdout(sys.stderr):
            outcome = await drive.run(
                seed,
                size,
                Path(folder),
                worker_module="tests.chaos.mutants",
                tell=told.append,
                quiet=60.0,
                **{VARIABLE: name},
            )
    for violation in outcome.violations:
        found[violation.check] = found.get(violation.check, 0) + 1
    return found


def judge(names: Iterable[str], seed: int) -> int:
    table = Table("defect", "caught by", "violations of all kinds", title="The checker against defects")
    missed = 0
    for name in names:
        found = asyncio.run(caught(name, seed))
        right = sorted(MUTANTS[name].caught_by & found.keys())
        missed += not right
        kinds = ", ".join(f"{check} {count}" for check, count in sorted(found.items()))
        table.add_row(name, ", ".join(right) or "NOT CAUGHT", kinds or "none")
    Console().print(table)
    return 1 if missed else 0


def main() -> int:
    if VARIABLE in os.environ:
        return worker()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *MUTANTS], help="only these")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    return judge(asked.names or MUTANTS, asked.seed)


if __name__ == "__main__":
    sys.exit(main())
