"""Signals between workflows, sent by a client: that costs the sender no workflow task of its own, and a
signal with start reaches a lane that is not there yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from activities import visibility
from domain import ids, messages
from domain.dependency import Answer
from domain.events import RunChanged
from domain.run import Advanced, ParentWait, Run, WaitStatus
from domain.schedule_mail import (
    AnnounceDue,
    AskParent,
    DropFromLane,
    Letter,
    Mail,
    ReleaseLane,
    RequestLane,
    Subscribe,
    TellDependent,
    WithdrawFromLane,
)
from domain.values import Value
from readmodel.projection import Projector


class LaneLetter(Value):
    workspace: str
    schedule_id: str | None
    mail: Mail


class Letters(Value):
    """Letters to other schedules, each of which may be sent again."""

    workspace: str
    sender: str
    letters: tuple[Letter, ...]


class ScheduleLetter(Value):
    workspace: str
    schedule_id: str | None
    """None for manual runs, which have none."""
    changes: tuple[Advanced, ...]


@dataclass(frozen=True)
class PostActivities:
    client: Client
    projector: Projector

    @activity.defn(name="almanac.tell_lane")
    async def tell_lane(self, letter: LaneLetter) -> None:
        match letter.mail:
            case RequestLane(lane=lane, entry=entry, again=again):
                begun = again and await self._has_begun(entry.run)
                request = messages.LaneRequest(entry=entry, begun=begun)
                await request_lane(self.client, letter.workspace, lane, request)
            case WithdrawFromLane(lane=lane, reason=reason, message=message, only_occurrences=only):
                assert letter.schedule_id is not None
                withdrawal = messages.LaneWithdrawal(
                    schedule_id=letter.schedule_id, reason=reason, message=message, only_occurrences=only
                )
                await self._tell(letter.workspace, lane, messages.LANE_WITHDRAW_SIGNAL, withdrawal)
            case DropFromLane(lane=lane, run_id=run_id, by=by):
                drop = messages.LaneDrop(run_id=run_id, by=by)
                await self._tell(letter.workspace, lane, messages.LANE_DROP_SIGNAL, drop)
            case ReleaseLane(lane=lane, run_id=run_id):
                release = messages.LaneRelease(run_id=run_id)
                await self._tell(letter.workspace, lane, messages.LANE_RELEASE_SIGNAL, release)
            case _:
                assert_never(letter.mail)

    @activity.defn(name="almanac.tell_schedule")
    async def tell_schedule(self, letter: ScheduleLetter) -> None:
        """A schedule that is gone can't pass its runs' ends on to the read model, and a manual run has none that
        could; so they are written here."""
        if letter.schedule_id is not None:
            try:
                await self._schedule(letter.workspace, letter.schedule_id).signal(
                    messages.RUN_REPORT_SIGNAL, messages.RunReport(changes=letter.changes)
                )
                return
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
        await self.projector.project(tuple(RunChanged(change=change) for change in letter.changes))

    @activity.defn(name="almanac.tell_kin")
    async def tell_kin(self, post: Letters) -> None:
        async with asyncio.TaskGroup() as group:
            for letter in post.letters:
                group.create_task(self._tell_kin(post.workspace, post.sender, letter))

    async def _tell_kin(self, workspace: str, sender: str, letter: Letter) -> None:
        """A parent that is gone is answered for: it has no occurrence. Whoever else is gone needs no letter."""
        signal, content = _wire(letter)
        try:
            await self._schedule(workspace, letter.schedule_id).signal(signal, content)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            if isinstance(letter, AskParent):
                gone = ParentWait(schedule_id=letter.schedule_id, status=WaitStatus.ABSENT, since=datetime.now(UTC))
                answer = Answer(run_id=letter.question.run_id, parent=gone)
                await self._schedule(workspace, sender).signal(messages.ANSWER_SIGNAL, answer)

    def _schedule(self, workspace: str, schedule_id: str) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(ids.schedule_workflow_id(workspace, schedule_id))

    async def _has_begun(self, run: Run) -> bool:
        try:
            await self.client.get_workflow_handle(ids.run_workflow_id(run.workspace, run.run_id)).describe()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    async def _tell(self, workspace: str, lane: str, signal: str, message: messages.LaneLetter) -> None:
        """A lane that is gone holds nothing and has nobody waiting."""
        handle = self.client.get_workflow_handle(ids.lane_workflow_id(workspace, lane))
        with suppress_not_found():
            await handle.signal(signal, message)


async def request_lane(client: Client, workspace: str, lane: str, request: messages.LaneRequest) -> None:
    """Asks for the lane, which is started if need be. Raises RPCError."""
    await client.start_workflow(
        messages.LANE_WORKFLOW,
        messages.LaneInput(workspace=workspace, lane_key=lane),
        id=ids.lane_workflow_id(workspace, lane),
        task_queue=messages.TASK_QUEUE,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        start_signal=messages.LANE_REQUEST_SIGNAL,
        start_signal_args=[request],
        search_attributes=visibility.lane(workspace, lane),
        static_summary=f"The lane of {lane}",
    )


def _wire(letter: Letter) -> tuple[str, Value]:
    """The signal that carries the letter, and what it carries."""
    match letter:
        case AskParent(question=question):
            return messages.QUESTION_SIGNAL, question
        case TellDependent(answer=answer):
            return messages.ANSWER_SIGNAL, answer
        case Subscribe():
            return messages.SUBSCRIBE_SIGNAL, letter
        case AnnounceDue(due=due):
            return messages.PARENT_DUE_SIGNAL, due
        case _:
            assert_never(letter)


@contextmanager
def suppress_not_found() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
