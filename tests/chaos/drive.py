"""One chaos run: the plan is carried out on a real stack, then all becomes quiet, then the evidence is collected."""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
from temporalio.service import RPCError

from tests.chaos import acts, checker, collect
from tests.chaos.acts import Town, root
from tests.chaos.evidence import Evidence, Violation
from tests.chaos.plan import WORKSPACES, Act, Blow, Pipeline, Size, plan
from tests.chaos.stack import Stack, stack
from tests.waiting import eventually

UNBLOCK_AFTER_FENCE_SECONDS = 2.0
TELL_EVERY_SECONDS = 5.0
QUIET_SECONDS = 240.0
"""How long Almanac may take to heal once nothing is done to it any more."""
WORKERS = 2
EVIDENCE = "evidence.pickle"
"""Beside the logs, so that what a check has found can be looked at again."""
UNREACHABLE = (OSError, RPCError, RuntimeError, asyncpg.PostgresError)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    seed: int
    minutes: float
    evidence: Evidence
    kills: dict[str, int]
    halts: int
    acts: dict[str, int]
    violations: list[Violation]

    @property
    def occurrences(self) -> int:
        """Those that fell due and were to be dealt with."""
        counted = 0
        for run in self.evidence.runs:
            if run.missed is not None:
                counted += run.missed[2]
            elif run.origin in ("cron", "catch_up"):
                counted += 1
        return counted

    def summary(self) -> dict[str, float]:
        return {
            "seed": self.seed,
            "minutes": self.minutes,
            "occurrences": self.occurrences,
            "runs": len(self.evidence.runs),
            "kills": sum(self.kills.values()),
            "violations": len(self.violations),
        }


def say(words: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {words}", file=sys.stderr, flush=True)  # noqa: DTZ005  for the eye


async def run(
    seed: int,
    size: Size,
    folder: Path,
    *,
    worker_module: str = "worker",
    tell: Say = say,
    quiet: float = QUIET_SECONDS,
    **extra: str,
) -> Outcome:
    """In an empty folder, which keeps the logs and the evidence. `worker_module` is what worker processes run, `extra`
    further variables of their environment; healing may take `quiet` seconds."""
    made = plan(seed, size, datetime.now(UTC))
    beats = {"ALMANAC_HEARTBEAT_INTERVAL_SECONDS": str(size.heartbeat_seconds)}
    async with stack(folder, WORKERS, worker_module, beats | extra) as up, up.http() as http:
        town = Town(made, http, await up.client())
        await settle(town, up)
        tell(f"seed {seed}: {len(town.ids)} schedules, {len(made.acts)} acts, {len(made.blows)} blows")
        await _storm(town, up, tell)
        await _quiet(town, up, tell, quiet)
        evidence = await _collected(town, up)
    await asyncio.to_thread((folder / EVIDENCE).write_bytes, pickle.dumps(evidence))
    found = checker.violations(evidence)
    for violation in found:
        print(checker.trace(evidence, violation), flush=True)
    kills = {part.name: part.kills for part in up.parts.values()}
    halts = sum(len(part.halts) for part in up.parts.values())
    return Outcome(seed, round(size.seconds / 60, 2), evidence, kills, halts, town.done, found)


# Before ----------------------------------------------------------------------------------------------------------


async def settle(town: Town, up: Stack) -> None:
    """Workspaces, pipelines and the schedules that are there from the start."""
    for workspace in WORKSPACES:
        await town.certainly("PUT", root(workspace))
    for workspace, pipeline in town.plan.pipelines:
        await town.certainly("PUT", f"{root(workspace)}/pipelines/{pipeline.name}", _definition(pipeline, up))
        await town.certainly("POST", f"{root(workspace)}/pipelines/{pipeline.name}/release")
    for planned in town.plan.schedules:
        if not planned.spare:
            await eventually(lambda one=planned: acts.add(town, one), within=120, what=f"{planned}")  # type: ignore[misc]


def _definition(pipeline: Pipeline, up: Stack) -> dict[str, object]:
    script = Path(__file__).with_name("step.py")
    argv = [sys.executable, "-I", "-S", str(script), str(up.ledger), str(pipeline.seconds), str(pipeline.failing)]
    steps = [
        {"id": f"step-{number}", "command": argv, "needs": [f"step-{number - 1}"] if number else []}
        for number in range(pipeline.steps)
    ]
    return {"name": pipeline.name, "steps": steps}


# The storm -------------------------------------------------------------------------------------------------------


async def _storm(town: Town, up: Stack, tell: Say) -> None:
    began = time.monotonic()
    doing: set[asyncio.Task[None]] = set()
    async with _beside(_people(town), _told(town, up, tell, began)):
        queue: list[Act | Blow] = sorted([*town.plan.acts, *town.plan.blows], key=lambda each: each.at)
        for each in queue:
            if each.at > town.plan.size.seconds:
                break
            await asyncio.sleep(max(began + each.at - time.monotonic(), 0))
            work = _strike(up, each) if isinstance(each, Blow) else acts.perform(town, each)
            doing.add(asyncio.create_task(work))
        await asyncio.sleep(max(began + town.plan.size.seconds - time.monotonic(), 0))
        await asyncio.gather(*doing)


async def _strike(up: Stack, blow: Blow) -> None:
    name = up.workers[int(blow.chance * len(up.workers))] if blow.part == "worker" else blow.part
    part = up.parts[name]
    if blow.seconds:
        await part.halt(blow.seconds)
        return
    await eventually(part.killed, what=f"{name} to be there to be killed")


@asynccontextmanager
async def _beside(*work: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(found, Exception):
                raise found


async def _people(town: Town) -> None:
    """Somebody looks at blocked schedules, when what was lost must be over, and unblocks them."""
    while True:
        await asyncio.sleep(3)
        for workspace in WORKSPACES:
            found = await town.call("GET", f"{root(workspace)}/schedules?condition=blocked&limit=100")
            for view in found.json()["items"] if found is not None and found.status_code == 200 else []:
                since = datetime.fromisoformat(view["blocked"]["since"]).timestamp()
                if time.time() - since > town.plan.size.fence_seconds + UNBLOCK_AFTER_FENCE_SECONDS:
                    await town.call("POST", f"{root(workspace)}/schedules/{view['schedule_id']}/unblock")


async def _told(town: Town, up: Stack, tell: Say, began: float) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY_SECONDS)
        kills = ", ".join(f"{part.name} {part.kills}" for part in up.parts.values())
        states = "database unreachable"
        with suppress(*UNREACHABLE):
            states = await _states(up)
        done = sum(town.done.values())
        tell(f"{time.monotonic() - began:5.0f} s: {done} acts; killed: {kills}; runs: {states}")


async def _states(up: Stack) -> str:
    connection = await asyncpg.connect(up.postgres.plain_url, timeout=3)
    try:
        found = await connection.fetch("SELECT state, count(*) FROM runs GROUP BY state ORDER BY state", timeout=3)
        return ", ".join(f"{row['state']} {row['count']}" for row in found)
    finally:
        await connection.close(timeout=3)


# Afterwards ------------------------------------------------------------------------------------------------------


async def _quiet(town: Town, up: Stack, tell: Say, within: float) -> None:
    """Nothing is killed any more and nothing new falls due; returns when nothing is open, or after a bounded time:
    what is still open then is for the checker to tell."""
    await town.certainly("PUT", root("annex"), {"active": True})
    for number in town.ids:
        await town.certainly("POST", f"{town.path(number)}/pause")
    until = time.monotonic() + within
    left = ["everything"]
    while time.monotonic() < until:
        with suppress(*UNREACHABLE):
            left = await _unsettled(town, up)
            if not left:
                tell("quiet")
                return
        await asyncio.sleep(0.5)
    tell(f"not quiet after {within:.0f} s: {'; '.join(left[:10])}")


async def _unsettled(town: Town, up: Stack) -> list[str]:
    """Runs that are open, and schedules whose row is not yet what their workflow says."""
    left = await collect.open_runs(up.postgres.plain_url)
    if left:
        return left
    rows = await collect.schedule_rows(up.postgres.plain_url)
    for number, schedule_id in town.ids.items():
        if rows.get(schedule_id, {}).get("condition") == "deleted":
            continue
        workflow = town.client.get_workflow_handle(f"schedule/{town.schedule(number).workspace}/{schedule_id}")
        view = await workflow.query("schedule")
        if view["open_runs"] or view != rows.get(schedule_id):
            left.append(f"schedule {schedule_id}")
    running = 'WorkflowType="almanac.run" AND ExecutionStatus="Running" AND AlmanacRunState!="unknown"'
    left += [each.id async for each in town.client.list_workflows(running)]
    return left


async def _collected(town: Town, up: Stack) -> Evidence:
    until = time.time()
    runs, schedules, claims = await collect.rows(up.postgres.plain_url)
    lives, workflows = await collect.histories(town.client)
    return Evidence(
        until=until,
        fence_seconds=town.plan.size.fence_seconds,
        steps={(workspace, pipeline.name): pipeline.steps for workspace, pipeline in town.plan.pipelines},
        runs=runs,
        schedules=schedules,
        lives=lives,
        workflows=workflows,
        claims=claims,
        ledger=collect.ledger(up.ledger),
        folders=collect.folders(up.data.storage),
        asks=tuple(town.asks),
        halts=tuple((part.name, *halt) for part in up.parts.values() for halt in part.halts),
    )


def counted(outcome: Outcome) -> str:
    """For people, one line a subject."""
    ends = Counter(f"{run.state}{'/' + run.reason if run.reason else ''}" for run in outcome.evidence.runs)
    subjects = {"runs": ends, "acts": outcome.acts, "kills": outcome.kills, "halts": {"all": outcome.halts}}
    return "\n".join(
        f"{subject:<6} " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        for subject, counts in subjects.items()
    )
