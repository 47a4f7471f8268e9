"""Runs that ask for a lane without a schedule behind them, so that a test decides what arrives there and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy

from domain import ids, messages
from domain.lane import Lane, LaneEntry, Launch
from domain.messages import LaneInput, LaneRequest
from domain.run import Origin, Run, RunState, hand_over
from domain.schedule import CollisionPolicy
from domain.values import Value
from tests.waiting import eventually
from tests.workflows.harness import Harness


@dataclass(frozen=True)
class LaneDesk:
    """One lane, addressed as the schedules do it."""

    harness: Harness
    target: str = "probe:a"
    history_limit: int = messages.HISTORY_LIMIT

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        """Whichever of the lane's runs is the present one."""
        return self.harness.client.get_workflow_handle(ids.lane_workflow_id(self.harness.workspace, self.target))

    async def request(self, entry: LaneEntry) -> Run:
        await self.harness.client.start_workflow(
            messages.LANE_WORKFLOW,
            LaneInput(workspace=self.harness.workspace, lane_key=self.target, history_limit=self.history_limit),
            id=self.handle.id,
            task_queue=messages.TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=messages.LANE_REQUEST_SIGNAL,
            start_signal_args=[LaneRequest(entry=entry)],
        )
        return entry.run

    async def send(self, signal: str, letter: Value) -> None:
        await self.handle.signal(signal, letter)

    async def look(self) -> Lane:
        lane: Lane = await self.handle.query("lane", result_type=Lane)
        return lane

    async def free(self) -> None:
        """Returns once nobody holds the lane and nobody waits for it."""

        async def look() -> bool:
            lane = await self.look()
            return lane.holder is None and not lane.waiting

        await eventually(look, what=f"the lane of {self.target} to be free")

    async def renewals(self) -> int:
        """How often the lane has continued as new."""
        runs = [run async for run in self.harness.client.list_workflows(f'WorkflowId = "{self.handle.id}"')]
        return len(runs) - 1

    def occurrence(
        self,
        schedule: str,
        minute: int = 0,
        *,
        script: str = "succeed",
        policy: CollisionPolicy = CollisionPolicy.QUEUE_LATEST,
        priority: int = 5,
        expires: timedelta = timedelta(days=1),
    ) -> LaneEntry:
        """A run as its schedule would hand it over; `minute` tells the occurrences of one schedule apart."""
        now = datetime.now(UTC)
        due = datetime(2026, 12, 1, tzinfo=UTC) + timedelta(minutes=minute)
        schedule_id = f"{schedule}-{self.harness.workspace}"
        run = Run(
            run_id=ids.occurrence_run_id(schedule_id, due),
            workspace=self.harness.workspace,
            schedule_id=schedule_id,
            schedule_name=schedule,
            schedule_revision=1,
            origin=Origin.CRON,
            scheduled_for=due,
            reference_time=due,
            reference_zone="Africa/Abidjan",
            executor="probe",
            target=self.target,
            state=RunState.QUEUED,
            recorded_at=now,
            changed_at=now,
            start_by=now + expires,
        )
        launch = Launch(
            payload={"lane": self.target.partition(":")[2], "script": script},
            lateness_seconds=600,
            execution_timeout_seconds=3600,
            heartbeat_seconds=1,
        )
        return LaneEntry(run=hand_over(run), launch=launch, policy=policy, priority=priority)
