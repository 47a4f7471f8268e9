"""Asks for a manual run as the API does, for the executor of the tests."""

from __future__ import annotations

from datetime import UTC, datetime

from activities.post import request_lane
from domain import manual_run
from domain.manual_run import ManualRun
from domain.messages import LaneRequest
from domain.run import Run
from tests.workflows.harness import Harness

LANE = "probe:a"


async def ask(harness: Harness, script: str = "succeed", key: str = "k") -> Run:
    request = manual_run.request(
        harness.workspace,
        "probe",
        ManualRun(),
        payload={"lane": "a", "script": script},
        target=LANE,
        key=key,
        by="test",
        heartbeat_seconds=1,
        now=datetime.now(UTC),
    )
    assert request.recorded is not None
    run = request.entry.run.model_copy(update={"executor": "probe"})
    entry = request.entry.model_copy(update={"run": run})
    recorded = request.recorded.model_copy(
        update={"run": request.recorded.run.model_copy(update={"executor": "probe"})}
    )
    await request_lane(harness.client, harness.workspace, LANE, LaneRequest(entry=entry, recorded=recorded))
    return run
