"""Work that leaves traces: every run writes to one ledger that it began, waits for its schedule's gate, and writes
that it ended. So what happened in the world can be held against what Almanac says of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from domain.run import FINAL_STATES, Run
from tests.api.desk import Desk, definition
from tests.embedded.waiting import ended
from tests.waiting import eventually

STEP = """
sleep 600 &
echo "$ALMANAC_RUN_ID began $$ $!" >> "$1"
while test ! -e "$2/$ALMANAC_SCHEDULE_ID"; do sleep 0.05; done
echo "$ALMANAC_RUN_ID ended" >> "$1"
"""


@dataclass(frozen=True)
class Work:
    """The schedules of one pipeline, and so of one lane."""

    desk: Desk
    folder: Path
    pipeline: str

    @classmethod
    async def at(cls, http: httpx.AsyncClient, folder: Path, pipeline: str = "work") -> Work:
        work = cls(Desk(http, "default"), folder, pipeline)
        work._gates.mkdir(exist_ok=True)
        work._ledger.touch()
        await work.desk.release(pipeline, ["sh", "-c", STEP, "step", str(work._ledger), str(work._gates)])
        return work

    def through(self, http: httpx.AsyncClient) -> Work:
        """The same over another connection."""
        return Work(Desk(http, self.desk.workspace), self.folder, self.pipeline)

    async def schedule(self, name: str, *, open_gate: bool = True, **changes: Any) -> str:
        body = definition(name=name, payload={"pipeline": self.pipeline, "version": "current"}, **changes)
        answer = await self.desk.post("/schedules", body)
        assert answer.status_code == 201, answer.text
        schedule: str = answer.json()["schedule_id"]
        if open_gate:
            self.open(schedule)
        return schedule

    async def run_now(self, schedule: str, key: str = "once") -> str:
        answer = await self.desk.post(f"/schedules/{schedule}/run-now", Idempotency_Key=key)
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["run_id"]
        return run_id

    async def pause(self, schedule: str) -> None:
        assert (await self.desk.post(f"/schedules/{schedule}/pause")).status_code == 200

    def open(self, schedule: str) -> None:
        """From now on its runs may end."""
        (self._gates / schedule).touch()

    def ledger(self, run_id: str) -> list[str]:
        """What the run wrote, without process ids."""
        return [line.split()[1] for line in self._ledger.read_text().splitlines() if line.split()[0] == run_id]

    def executed(self) -> set[str]:
        """All runs whose step began."""
        return {line.split()[0] for line in self._ledger.read_text().splitlines()}

    async def began(self, run_id: str) -> list[int]:
        """The ids of the run's processes, once its step has begun."""

        async def look() -> list[int] | None:
            lines = [line.split() for line in self._ledger.read_text().splitlines()]
            return next(([int(pid) for pid in line[2:]] for line in lines if line[:2] == [run_id, "began"]), None)

        return await eventually(look, what=f"the step of {run_id}")

    async def over(self, pids: list[int]) -> None:
        async def look() -> bool:
            return all(ended(pid) for pid in pids)

        await eventually(look, what=f"the end of the processes {pids}")

    async def runs(self, schedule: str) -> list[Run]:
        answer = await self.desk.get("/runs", schedule_id=schedule, limit=200)
        assert answer.status_code == 200, answer.text
        return [Run.model_validate(item) for item in answer.json()["items"]][::-1]

    async def in_state(self, schedule: str, *states: str, within: float = 30.0) -> Run:
        async def look() -> Run | None:
            return next((run for run in await self.runs(schedule) if run.state in states), None)

        return await eventually(look, within=within, what=f"a run of {schedule} in {states}")

    async def final(self, schedules: Collection[str], within: float = 60.0) -> dict[str, list[Run]]:
        """The runs of each schedule, once all have ended."""

        async def look() -> dict[str, list[Run]] | None:
            runs = {schedule: await self.runs(schedule) for schedule in schedules}
            return runs if all(r and all(run.state in FINAL_STATES for run in r) for r in runs.values()) else None

        return await eventually(look, within=within, what="the end of all runs")

    async def view(self, schedule: str) -> dict[str, Any]:
        answer = await self.desk.get(f"/schedules/{schedule}")
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] = answer.json()
        return view

    async def trail(self, run_id: str) -> list[str]:
        return [row["kind"] for row in (await self.desk.get(f"/runs/{run_id}/trail")).json()["items"]]

    @property
    def _ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def _gates(self) -> Path:
        return self.folder / "gates"
