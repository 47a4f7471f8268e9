"""A parent ends while nobody can hear it: its dependents are released once all the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from domain.run import RunState
from tests.e2e.machine import machine
from tests.e2e.work import Work
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(240)]


async def test_a_parent_that_ends_during_an_outage_releases_its_dependents_once(tmp_path: Path) -> None:
    """With heartbeats so far apart that the outage is too short for the worker to be taken for lost."""
    async with machine(tmp_path, heartbeat_interval_seconds="10", min_interval_seconds="60") as up, up.api() as http:
        parents, dependents = await Work.at(http, tmp_path, "parents"), await Work.at(http, tmp_path, "dependents")
        close = await parents.schedule("close", open_gate=False, cron="* * * * *")
        pulse = await dependents.schedule("pulse", cron=None, after_schedule_ids=[close])
        waiting = (await dependents.in_state(pulse, "waiting", within=90)).run_id
        held = (await parents.in_state(close, "running")).run_id
        await parents.began(held)
        async with up.left_alone():
            os.kill(up.pid_of("Temporal"), signal.SIGKILL)
            parents.open(close)

            async def over() -> bool:
                return parents.ledger(held) == ["began", "ended"]

            await eventually(over, what="the end of the parent's step")
        await up.ready_again("Temporal")
        await dependents.in_state(pulse, "succeeded", within=60)
        await parents.pause(close)
        found = await dependents.final([close, pulse])
        assert dependents.ledger(waiting) == ["began", "ended"]
        ended = {run.scheduled_for: run for run in found[close]}
        for run in found[pulse]:
            (parent,) = run.waits_for
            assert parent.occurrence == run.scheduled_for
            succeeded = run.state is RunState.SUCCEEDED
            assert dependents.ledger(run.run_id) == (["began", "ended"] if succeeded else [])
            assert not succeeded or ended[run.scheduled_for].state is RunState.SUCCEEDED
        assert len({run.scheduled_for for run in found[pulse]}) == len(found[pulse])
