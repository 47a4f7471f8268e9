"""What Temporal answers, as refusals."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from api.refusals import refusals, to_refusal
from domain.errors import AlmanacError, Busy, Conflict, Invalid, NotFound, Unavailable
from workflows.refusals import failure


@pytest.mark.parametrize(
    "raised",
    [
        Conflict("schedule.revision_conflict", "Somebody was faster.", field="revision", current=4),
        Invalid("schedule.validation.cron_never", "Never.", field="cron", hint="Choose another day."),
        NotFound("schedule.not_found", "Gone."),
        Busy("schedule.busy", "Wait."),
        Unavailable("database.unavailable", "Later."),
    ],
)
def test_a_refusal_of_a_workflow_arrives_as_it_was_raised(raised: AlmanacError) -> None:
    arrived = to_refusal(WorkflowUpdateFailedError(failure(raised)))

    assert type(arrived) is type(raised)
    assert arrived is not None
    for part in ("code", "message", "field", "hint", "details", "status"):
        assert getattr(arrived, part) == getattr(raised, part)


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (RPCError("", RPCStatusCode.NOT_FOUND, b""), NotFound, "schedule.not_found"),
        (RPCError("", RPCStatusCode.RESOURCE_EXHAUSTED, b""), Busy, "temporal.busy"),
        (RPCError("", RPCStatusCode.UNAVAILABLE, b""), Unavailable, "temporal.unavailable"),
        (RPCError("", RPCStatusCode.DEADLINE_EXCEEDED, b""), Unavailable, "temporal.unavailable"),
        (RPCError("transport error", RPCStatusCode.UNKNOWN, b""), Unavailable, "temporal.unavailable"),
        (RPCError("h2 protocol error: reset", RPCStatusCode.INTERNAL, b""), Unavailable, "temporal.unavailable"),
        (WorkflowUpdateRPCTimeoutOrCancelledError(), Unavailable, "temporal.unavailable"),
        (TimeoutError(), Unavailable, "temporal.unavailable"),
        (RuntimeError("Failed client connect: refused"), Unavailable, "temporal.unavailable"),
        (WorkflowAlreadyStartedError("schedule/w/s", "almanac.schedule"), Conflict, "schedule.deleted"),
    ],
)
def test_what_the_server_says_has_a_name(error: Exception, kind: type[AlmanacError], code: str) -> None:
    with pytest.raises(kind) as refused, refusals():
        raise error
    assert refused.value.code == code


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a defect"),
        RuntimeError("a defect"),
        RPCError("", RPCStatusCode.INTERNAL, b""),
        WorkflowUpdateFailedError(ApplicationError("no details", type="x")),
        WorkflowUpdateFailedError(ApplicationError("no type", {"status": 409})),
        WorkflowUpdateFailedError(ApplicationError("odd status", {"status": 200}, type="x")),
        WorkflowUpdateFailedError(ValueError("not typed")),
    ],
)
def test_a_defect_passes_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, refusals():
        raise error
    assert raised.value is error
