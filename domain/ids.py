"""Deterministic ids: the same thing has the same id however often it is computed.

Temporal refuses a second workflow of one id and PostgreSQL a second row of one key, so deriving ids from
what they name is what makes every repeated effect a no-op.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, date, datetime

EXECUTION_NAMESPACE = uuid.UUID("6f1d1c0e-3c7e-5d0b-9f5e-0d5f6d1f8a11")


def schedule_workflow_id(workspace: str, schedule_id: str) -> str:
    return f"schedule/{workspace}/{schedule_id}"


def lane_workflow_id(workspace: str, target: str) -> str:
    return f"lane/{workspace}/{target}"


def run_workflow_id(workspace: str, run_id: str) -> str:
    return f"run/{workspace}/{run_id}"


def occurrence_run_id(schedule_id: str, scheduled_for: datetime) -> str:
    """The run of one occurrence: `<schedule>-20270314T070000Z`."""
    return f"{schedule_id}-{_stamp(scheduled_for)}"


def driven_run_id(schedule_id: str, day: date) -> str:
    """The run of a schedule that several parents drive, one a local date."""
    return f"{schedule_id}-{day:%Y%m%d}"


def missed_run_id(schedule_id: str, first: datetime) -> str:
    """The summary row of an unbroken stretch of missed occurrences, named by the first of them."""
    return f"{schedule_id}-{_stamp(first)}-missed"


def run_now_id(schedule_id: str, request_key: str) -> str:
    """The run of one Run now request; the same key is the same run."""
    return f"{schedule_id}-now-{hashlib.sha256(request_key.encode()).hexdigest()[:16]}"


def manual_run_id(workspace: str, pipeline: str, request_key: str) -> str:
    """The run of one manual request; the same key is the same run. Ids are unique over all workspaces."""
    named = "\0".join((workspace, pipeline, request_key))
    return f"manual-{hashlib.sha256(named.encode()).hexdigest()[:20]}"


def execution_id(run_id: str) -> str:
    """What a run launched. A run launches at most once, so its execution's id follows from its own."""
    return str(uuid.uuid5(EXECUTION_NAMESPACE, run_id))


def _stamp(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
