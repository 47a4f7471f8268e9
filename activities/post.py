"""Signals between workflows, sent by a client: that costs the sender no workflow task of its own, and a
signal with start reaches a lane that is not there yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from temporalio import activity
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from activities import visibility
from domain import ids, messages
from domain.events import RunChanged
from domain.lane import LaneEntry
from domain.run import Advanced
from domain.schedule_mail import Mail, ReleaseLane, RequestLane, WithdrawFromLane
from domain.values import Value
from readmodel.projection import Projector


class LaneLetter(Value):
    workspace: str
    schedule_id: str
    mail: Mail


class ScheduleLetter(Value):
    workspace: str
    schedule_id: str
    changes: tuple[Advanced, ...]


@dataclass(frozen=True)
class PostActivities:
    client: Client
    projector: Projector

    @activity.defn(name="almanac.tell_lane")
    async def tell_lane(self, letter: LaneLetter) -> None:
        match letter.mail:
            case RequestLane(lane=lane, entry=entry):
                await self._request(letter.workspace, lane, entry)
            case WithdrawFromLane(lane=lane, reason=reason, message=message, only_occurrences=only):
                withdrawal = messages.LaneWithdrawal(
                    schedule_id=letter.schedule_id, reason=reason, message=message, only_occurrences=only
                )
                await self._tell(letter.workspace, lane, messages.LANE_WITHDRAW_SIGNAL, withdrawal)
            case ReleaseLane(lane=lane, run_id=run_id):
                release = messages.LaneRelease(run_id=run_id)
                await self._tell(letter.workspace, lane, messages.LANE_RELEASE_SIGNAL, release)
            case _:
                assert_never(letter.mail)

    @activity.defn(name="almanac.tell_schedule")
    async def tell_schedule(self, letter: ScheduleLetter) -> None:
        """A schedule that is gone can't pass its runs' ends on to the read model, so they are written here."""
        handle = self.client.get_workflow_handle(ids.schedule_workflow_id(letter.workspace, letter.schedule_id))
        try:
            await handle.signal(messages.RUN_REPORT_SIGNAL, messages.RunReport(changes=letter.changes))
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            await self.projector.project(tuple(RunChanged(change=change) for change in letter.changes))

    async def _request(self, workspace: str, lane: str, entry: LaneEntry) -> None:
        await self.client.start_workflow(
            messages.LANE_WORKFLOW,
            messages.LaneInput(workspace=workspace, lane_key=lane),
            id=ids.lane_workflow_id(workspace, lane),
            task_queue=messages.TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=messages.LANE_REQUEST_SIGNAL,
            start_signal_args=[messages.LaneRequest(entry=entry)],
            search_attributes=visibility.lane(workspace, lane),
            static_summary=f"The lane of {lane}",
        )

    async def _tell(self, workspace: str, lane: str, signal: str, message: messages.LaneLetter) -> None:
        """A lane that is gone holds nothing and has nobody waiting."""
        handle = self.client.get_workflow_handle(ids.lane_workflow_id(workspace, lane))
        with suppress_not_found():
            await handle.signal(signal, message)


@contextmanager
def suppress_not_found() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
