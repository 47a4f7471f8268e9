"""How a refusal leaves a workflow: with its stable code as the failure's type, so that an update is refused
and no workflow task ever fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.exceptions import ApplicationError

from domain.errors import AlmanacError


@contextmanager
def refusals() -> Iterator[None]:
    """Turns a domain refusal raised inside into the failure that reaches the caller."""
    try:
        yield
    except AlmanacError as refusal:
        raise failure(refusal) from refusal


def failure(refusal: AlmanacError) -> ApplicationError:
    details = {
        "status": refusal.status,
        "field": refusal.field,
        "hint": refusal.hint,
        "details": refusal.details,
    }
    return ApplicationError(refusal.message, details, type=refusal.code, non_retryable=True)
