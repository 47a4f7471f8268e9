"""Records histories of all scenarios on real servers, for the replay test. Run by scripts/record-histories.

A scenario's new histories take the place of its older ones, whose promise ends there: keep a copy of the folder under
another name for as long as workflows that were started under it may be alive.
"""

from __future__ import annotations

import asyncio
import gzip
import shutil
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client, WorkflowHistory

from tests.replay.histories import FOLDER
from tests.replay.scenarios import ALONE, TOGETHER, Scenario
from tests.replay.stage import Stage, stage


async def record(names: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="almanac-record-") as folder:
        async with stage(Path(folder)) as built:
            together = {name: scenario for name, scenario in TOGETHER.items() if name in names}
            await asyncio.gather(*(_play(built, name, scenario) for name, scenario in together.items()))
            for name, scenario in ALONE.items():
                if name in names:
                    await _play(built, name, scenario)


async def _play(stage: Stage, name: str, scenario: Scenario) -> None:
    await scenario(stage, stage.harness(name))
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    kept = [_keep(name, number, history) for number, history in enumerate(await _histories(stage.client, name))]
    print(f"{name}: {len(kept)} histories, {sum(kept)} bytes", flush=True)


async def _histories(client: Client, workspace: str) -> list[WorkflowHistory]:
    """Of everything in the workspace, oldest first, one of each shape: a hundred runs that succeed are one story."""
    found = [w async for w in client.list_workflows() if w.id.split("/")[1] == workspace]
    shapes: dict[tuple[object, ...], WorkflowHistory] = {}
    for execution in sorted(found, key=lambda w: (w.start_time, w.id)):
        history = await client.get_workflow_handle(execution.id, run_id=execution.run_id).fetch_history()
        kind = execution.id.split("/")[0]
        shapes.setdefault((kind, *(event.event_type for event in history.events)), history)
    return list(shapes.values())


def _keep(scenario: str, number: int, history: WorkflowHistory) -> int:
    kind = history.workflow_id.split("/")[0]
    file = FOLDER / scenario / f"{number:02}-{kind}.json.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.write_bytes(gzip.compress(history.to_json().encode(), mtime=0))


if __name__ == "__main__":
    known = [*TOGETHER, *ALONE]
    asked = sys.argv[1:] or known
    if unknown := set(asked) - set(known):
        sys.exit(f"There is no scenario {', '.join(sorted(unknown))}; there are: {', '.join(known)}.")
    asyncio.run(record(asked))
