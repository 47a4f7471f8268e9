"""Runs are started as the system identity, and only because it may."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.account import Account
from activities.executions import ExecuteRun, ExecutionActivities
from activities.retention import Retention
from domain.authority import SYSTEM, Permission
from domain.lane import Launch
from domain.run import RunState
from executors.registry import Registry
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from readmodel.results import Results
from readmodel.workspaces import Workspaces
from tests.domain.builders import run as a_run

pytestmark = pytest.mark.stack

LAUNCH = Launch(payload={}, lateness_seconds=600, execution_timeout_seconds=60, heartbeat_seconds=30)


def test_the_system_identity_may_do_what_schedules_need_and_no_more() -> None:
    assert SYSTEM.permissions == {"pipeline.read", "pipeline.execute", "execution.read"}


@pytest.mark.parametrize("missing", [Permission.PIPELINE_READ, Permission.PIPELINE_EXECUTE])
async def test_who_may_not_run_pipelines_starts_nothing(
    client: Client, database: Database, storage: Path, missing: Permission
) -> None:
    weaker = SYSTEM.model_copy(update={"permissions": SYSTEM.permissions - {missing}})
    executions = ExecutionActivities(
        client=client,
        executors=Registry({}, {}),
        claims=Claims(database),
        account=Account(Claims(database), Results(database), storage),
        workspaces=Workspaces(database),
        storage=storage,
        worker="w",
        retention=Retention(Queries(database), Projector(database), storage),
        identity=weaker,
    )
    order = ExecuteRun(run=a_run(state=RunState.QUEUED), launch=LAUNCH)

    executed = await ActivityEnvironment().run(executions.execute_run, order)

    assert executed.change is not None
    ended = executed.change.run
    assert (ended.state, ended.reason, ended.blocks) == (RunState.NOT_STARTED, "authority_refused", True)
    assert str(missing) in str(ended.message)
    assert ended.run_folder is None
