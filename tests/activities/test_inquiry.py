"""Finding out what became of an execution, from real records and real run folders."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from sqlalchemy import delete
from temporalio.testing import ActivityEnvironment

from activities.account import Account
from activities.detached import DetachedActivities
from activities.inquiry import Inquiry, InquiryActivities, WatchExecution
from domain import ids
from domain.events import RunChanged
from domain.frozen import FOLDER_OWNER
from domain.identity import RunIdentity
from domain.lost_run import Ending, Evidence, conclude
from domain.run import Origin, Run, RunState, advance, hand_over, note
from evidence import documents, endings, folders
from evidence.book import SLOT
from executors.registry import Registry
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.projection import Projector
from readmodel.queries import Queries
from readmodel.results import Results
from readmodel.tables import executions
from tests.domain.builders import run as a_run

pytestmark = pytest.mark.stack

NOW = datetime(2026, 12, 1, 12, 30, tzinfo=UTC)
FAILED = Ending(state=RunState.FAILED, reason="execution_failed", message="As told.")


class Case:
    """One run, claimed and begun as a worker would."""

    def __init__(self, database: Database, storage: Path) -> None:
        self.database = database
        self.claims = Claims(database)
        self.storage = storage
        self.activities = InquiryActivities(
            self.claims,
            Queries(database),
            storage,
            DetachedActivities(Registry({}, {}), Account(self.claims, Results(database), storage)),
        )
        self.run = a_run(f"s{uuid.uuid4().hex[:8]}", workspace="acme")
        self.execution_id = ids.execution_id(self.run.run_id)

    async def claim(self, family: Literal["sched", "manual"] = "sched") -> Run:
        where = (self.storage, "acme", "close")
        if family == "manual":
            name = folders.take_slot(*where, self.run.run_id)
        else:
            name = folders.allocate(*where, family, self.run.run_id)
        starting = advance(
            self.run,
            RunState.STARTING,
            NOW,
            execution_id=self.execution_id,
            run_folder=name,
            prepared={FOLDER_OWNER: "close"},
        )
        running = advance(starting.run, RunState.RUNNING, NOW)
        changes = (RunChanged(change=starting), RunChanged(change=running))
        assert await self.claims.claim(changes, run_id=self.run.run_id, execution_id=self.execution_id, worker="w")
        return running.run

    def folder(self, claimed: Run) -> Path:
        assert claimed.run_folder is not None
        return folders.run_folder_path(self.storage, "acme", "close", claimed.run_folder)

    def identity(self, claimed: Run) -> RunIdentity:
        return RunIdentity(
            run_kind="schedule",
            run_id=claimed.run_id,
            workspace="acme",
            schedule_id=claimed.schedule_id,
            scheduled_for=claimed.scheduled_for,
            trigger_source=claimed.origin,
            execution_id=self.execution_id,
            run_folder=claimed.run_folder or "",
            plan_revision=1,
        )

    async def inquire(self, run: Run | None = None, *, final: bool = False) -> Evidence:
        evidence: Evidence = await ActivityEnvironment().run(
            self.activities.inquire, Inquiry(run=run or self.run, final=final)
        )
        return evidence

    async def watch(self, run: Run, until: datetime) -> Ending | None:
        watch = WatchExecution(run=run, until=until, every_seconds=1)
        return (await ActivityEnvironment().run(self.activities.await_late_truth, watch)).ending


@pytest.fixture
def case(database: Database, storage: Path) -> Case:
    return Case(database, storage)


async def test_a_run_that_nobody_claimed_can_still_be_claimed_unless_it_is_given_up(case: Case) -> None:
    assert await case.inquire() == Evidence(claimed=None)
    assert await case.inquire(final=True) == Evidence(claimed=None)
    with pytest.raises(AssertionError):
        await case.claim()


async def test_a_claimed_run_is_found_as_it_was_frozen(case: Case) -> None:
    claimed = await case.claim()
    assert await case.inquire(final=True) == Evidence(claimed=claimed)
    documents.record_metadata(case.folder(claimed), case.identity(claimed), NOW, started=True)
    assert (await case.inquire()).began


async def test_the_end_beside_the_claim_is_found(case: Case) -> None:
    await case.claim()
    await case.claims.finish(
        case.execution_id, outcome=FAILED.state, at=NOW, reason=FAILED.reason, message=FAILED.message
    )
    assert (await case.inquire()).ending == FAILED


async def test_the_end_in_the_folder_is_found(case: Case) -> None:
    claimed = await case.claim()
    endings.write(case.folder(claimed), case.identity(claimed), FAILED, NOW)
    assert (await case.inquire()).ending == FAILED


async def test_a_torn_folder_is_unreadable_and_its_run_unknown(case: Case) -> None:
    claimed = await case.claim()
    (case.folder(claimed) / documents.METADATA).write_text('{"identity":')
    evidence = await case.inquire(claimed)
    change = conclude(claimed, evidence, announced=True, cause="", now=NOW)
    assert change is not None
    assert (change.run.state, change.run.reason) == (RunState.UNKNOWN, "outcome_unreadable")


async def test_a_record_that_vanished_is_missing(case: Case) -> None:
    claimed = await case.claim()
    async with case.database.transaction() as connection:
        await connection.execute(delete(executions).where(executions.c.run_id == case.run.run_id))
    change = conclude(claimed, await case.inquire(claimed), announced=True, cause="", now=NOW)
    assert change is not None
    assert (change.run.state, change.run.reason) == (RunState.UNKNOWN, "execution_missing")


async def test_a_claim_that_a_later_attempt_overwrote_in_the_mirror_is_found_all_the_same(case: Case) -> None:
    claimed = await case.claim()
    later = note(hand_over(claimed.model_copy(update={"state": RunState.QUEUED, "execution_id": None})), "retry", NOW)
    await Projector(case.database).project((RunChanged(change=later),))
    found = (await case.inquire(later.run)).claimed
    assert found is not None
    assert (found.state, found.execution_id) == (RunState.RUNNING, case.execution_id)


async def test_a_late_truth_is_heard_and_silence_ends_with_the_watch(case: Case) -> None:
    claimed = await case.claim()
    assert await case.watch(claimed, datetime.now(UTC) - timedelta(seconds=1)) is None
    endings.write(case.folder(claimed), case.identity(claimed), FAILED, NOW)
    assert await case.watch(claimed, datetime.now(UTC) + timedelta(hours=1)) == FAILED


async def test_a_manual_run_that_has_left_the_slot_is_read_where_its_folder_is(case: Case) -> None:
    case.run = case.run.model_copy(update={"origin": Origin.MANUAL})
    claimed = await case.claim("manual")
    assert claimed.run_folder == SLOT
    documents.record_metadata(case.folder(claimed), case.identity(claimed), NOW, started=True)
    assert folders.take_slot(case.storage, "acme", "close", f"{case.run.run_id}-next") == SLOT

    assert (await case.inquire(claimed)).unreadable is None
    home = folders.place_of(case.storage, "acme", "close", case.run.run_id)
    assert home not in (None, SLOT)
    endings.write(case.folder(claimed).with_name(str(home)), case.identity(claimed), FAILED, NOW)
    assert (await case.inquire(claimed)).ending == FAILED


async def test_what_is_no_truth_is_not_taken_for_one(case: Case) -> None:
    claimed = await case.claim()
    await case.claims.finish(case.execution_id, outcome=RunState.UNKNOWN, at=NOW, reason="start_failed")
    assert await case.watch(claimed, datetime.now(UTC) + timedelta(seconds=1.5)) is None
