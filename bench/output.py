"""What output costs a worker: its memory while several executions at once print a gigabyte each.

The peak of the worker is the kernel's own count (VmHWM). Beside it stand its guardians, which take the output: one for
each running step, and the process that they come from.

    python bench/output.py --runs 4 --bytes 1000000000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from pathlib import Path

import psutil
from rich.console import Console
from temporalio.client import WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy

from bench.fleet import many
from bench.servers import Servers, servers
from domain import ids, messages
from domain.messages import CreateSchedule, RunNow, RunNowAnswer, ScheduleInput
from domain.pipeline import PipelineDefinition, Step
from domain.run import Run, RunState
from domain.schedule import ScheduleDefinition
from readmodel.pipelines import Pipelines
from readmodel.queries import Queries
from readmodel.workspaces import Workspaces

WORKSPACE = "output"
LINE = "one line of what programs print, of an ordinary length and with nothing in it"
LOOK_SECONDS = 0.2
CODE = str(Path(__file__).resolve().parents[1])

console = Console(stderr=True)


async def measure(runs: int, size: int) -> dict[str, float]:
    async with servers() as parts:
        await Workspaces(parts.database).ensure(WORKSPACE)
        async with parts.worker("-m", "worker", almanac_max_concurrent_runs=str(runs)) as worker:
            await many(lambda number: create(parts, f"p{number}", size), runs)
            idle, began = peak(worker.pid), time.monotonic()
            await many(lambda number: start(parts, f"p{number}"), runs)
            guardians = await until_all_ended(parts, runs)
            seconds, most = time.monotonic() - began, peak(worker.pid)
        kept = [log.stat().st_size for log in parts.storage.rglob("stdout.log")]
    console.print(f"worker {idle:.0f} MB before and {most:.0f} MB at most, its guardians {guardians:.0f} MB")
    console.print(f"{runs} runs printed {size:,} bytes each in {seconds:.1f} s; kept: {max(kept):,} bytes at most")
    return {
        "worker_peak_rss_mb": round(most, 1),
        "worker_before_rss_mb": round(idle, 1),
        "guardians_peak_rss_mb": round(guardians, 1),
        "printed_gb": round(runs * size / 1e9, 3),
        "kept_mb": round(sum(kept) / 1e6, 1),
        "seconds": round(seconds, 1),
    }


async def create(parts: Servers, name: str, size: int) -> None:
    step = Step(id="print", command=("sh", "-c", f"yes '{LINE}' | head -c {size}"))
    pipelines = Pipelines(parts.database)
    await pipelines.save(WORKSPACE, PipelineDefinition(name=name, steps=(step,)), "bench")
    await pipelines.release(WORKSPACE, name, "bench")
    definition = ScheduleDefinition(
        name=name, cron="0 0 1 1 *", timezone="UTC", payload={"pipeline": name, "version": "current"}
    )
    await parts.client.execute_update_with_start_workflow(
        messages.CREATE_UPDATE,
        CreateSchedule(definition=definition, target=f"pipeline:{name}", by="bench"),
        start_workflow_operation=WithStartWorkflowOperation(
            messages.SCHEDULE_WORKFLOW,
            ScheduleInput(workspace=WORKSPACE, schedule_id=name),
            id=ids.schedule_workflow_id(WORKSPACE, name),
            task_queue=messages.TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        ),
    )


async def start(parts: Servers, name: str) -> None:
    schedule = parts.client.get_workflow_handle(ids.schedule_workflow_id(WORKSPACE, name))
    await schedule.execute_update(messages.RUN_NOW_UPDATE, RunNow(key="once", by="bench"), result_type=RunNowAnswer)


async def until_all_ended(parts: Servers, runs: int) -> float:
    """The most memory that the guardians had together meanwhile, in MB."""
    most, found = 0.0, list[Run]()
    while len(found) < runs or not all(run.is_final for run in found):
        most = max(most, sum(map(peak, guardians())))
        await asyncio.sleep(LOOK_SECONDS)
        found = list((await Queries(parts.database).runs(WORKSPACE)).items)
    assert {run.state for run in found} == {RunState.SUCCEEDED}, found
    return most


def guardians() -> list[int]:
    """Those whose code is this folder's."""
    return [process.pid for process in psutil.process_iter() if is_guardian(process)]


def is_guardian(process: psutil.Process) -> bool:
    try:
        return "executors.guardian" in process.cmdline() and process.environ().get("PYTHONPATH") == CODE
    except psutil.Error:
        return False


def peak(pid: int | None) -> float:
    """The most memory that a process ever had at once, in MB; none of one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    most = re.search(r"^VmHWM:\s*([0-9]+) kB$", status, re.MULTILINE)
    return int(most[1]) * 1024 / 1e6 if most else 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.runs, given.bytes))))
