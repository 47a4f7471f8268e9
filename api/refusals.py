"""What Temporal answers, as a refusal: a workflow's own keep their code, the server's are named here.

| Temporal says | refusal |
|---|---|
| the update failed or was refused with a typed failure | the same code, sentence and field |
| no such workflow, or it is completed | 404 `schedule.not_found` |
| it was once there and may not start again | 409 `schedule.deleted` |
| resource exhausted | 429 `temporal.busy` |
| unavailable, deadline, no connection, a broken one, timeout | 503 `temporal.unavailable` |

Anything else is a defect and passes unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import (
    AlmanacError,
    Busy,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

BY_STATUS = {
    kind.status: kind for kind in (Invalid, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, Busy, Unavailable)
}

SILENT = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        # A connection that breaks in the midst of a call.
        RPCStatusCode.UNKNOWN,
    }
)
BROKEN_STREAM = "h2 protocol error"
"""How a connection that breaks is also reported, as INTERNAL, by its transport rather than by the server."""


def to_refusal(error: Exception) -> AlmanacError | None:
    """The refusal that `error` stands for; None for a defect."""
    if isinstance(error, AlmanacError):
        return error
    if isinstance(error, WorkflowUpdateFailedError):
        return _of_failure(error.cause)
    if isinstance(error, WorkflowAlreadyStartedError):
        return Conflict("schedule.deleted", "The schedule that this request created has been deleted since.")
    if isinstance(error, RPCError):
        return _of_rpc(error)
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError | TimeoutError) or _is_no_connection(error):
        return unavailable()
    return None


@contextmanager
def refusals() -> Iterator[None]:
    """Raises what Temporal answers inside as the refusal it stands for."""
    try:
        yield
    except Exception as error:
        refusal = to_refusal(error)
        if refusal is None or refusal is error:
            raise
        raise refusal from error


def unavailable() -> Unavailable:
    return Unavailable(
        "temporal.unavailable",
        "Temporal or the worker did not answer in time, so it is not known whether the change was made.",
        hint="Read it again, or repeat the request with the same Idempotency-Key.",
    )


def _of_failure(cause: BaseException) -> AlmanacError | None:
    if not isinstance(cause, ApplicationError) or cause.type is None:
        return None
    said: Any = cause.details[0] if cause.details else {}
    if not isinstance(said, Mapping) or said.get("status") not in BY_STATUS:
        return None
    refusal = BY_STATUS[said["status"]]
    details = said.get("details") or {}
    return refusal(cause.type, cause.message, field=said.get("field"), hint=said.get("hint"), **details)


def _of_rpc(error: RPCError) -> AlmanacError | None:
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFound("schedule.not_found", "There is no such schedule in this workspace.")
    if error.status is RPCStatusCode.RESOURCE_EXHAUSTED:
        return Busy("temporal.busy", "Too many changes at once. Nothing was changed; try again in a moment.")
    return unavailable() if error.status in SILENT or BROKEN_STREAM in error.message else None


def _is_no_connection(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and str(error).startswith("Failed client connect")
