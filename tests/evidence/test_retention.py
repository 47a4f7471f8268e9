"""Old runs make room: which ones, whole pairs at a time, and whatever interrupts it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.identity import RunIdentity
from domain.run import Origin, RunState
from evidence import documents, folders, index, retention
from evidence.index import Entry

AT = datetime(2027, 3, 14, 7, tzinfo=UTC)
NOW = AT + timedelta(days=30)


def entry(number: int, family: str = "-sched", **more: Any) -> Entry:
    began = AT + timedelta(minutes=number)
    return Entry.model_validate(
        {
            "folder": f"iteration-{number}{family}",
            "kind": "schedule",
            "run_id": f"r{number}",
            "started_at": began,
            "completed_at": began,
            "status": RunState.SUCCEEDED,
            **more,
        }
    )


def due(*entries: Entry, keep: int = 2, protected: tuple[str, ...] = ()) -> list[str | None]:
    return [entry.run_id for entry in retention.due(entries, keep, protected, NOW)]


def test_the_runs_that_began_last_are_kept() -> None:
    assert due(entry(4), entry(1), entry(3), entry(2)) == ["r1", "r2"]
    assert due(entry(9, started_at=AT), entry(1), entry(2)) == ["r9"]


def test_each_family_counts_for_itself() -> None:
    hooks, manual = [entry(n, "-hook") for n in (1, 2)], [entry(n, "") for n in (3, 4)]
    assert due(*hooks, *manual, entry(5), entry(6)) == []
    assert due(*hooks, *manual, entry(5), entry(6), keep=1) == ["r1", "r3", "r5"]


@pytest.mark.parametrize(
    "spared",
    [
        entry(1, status=None, completed_at=None),
        entry(1, status=RunState.UNKNOWN, completed_at=NOW - timedelta(hours=24)),
        entry(1, expired_at=AT),
        entry(1, folder="iteration-0", kind="manual"),
        Entry(folder="iteration-1", kind="unknown_legacy"),
        entry(1, folder="not-a-run"),
    ],
)
def test_what_may_be_going_on_or_is_not_known_is_spared(spared: Entry) -> None:
    assert due(spared, entry(2), entry(3), keep=1) == ["r2"]


def test_an_unknown_run_is_let_go_when_nobody_waits_for_its_truth_any_more() -> None:
    assert due(entry(1, status=RunState.UNKNOWN), entry(2), keep=1) == ["r1"]


def test_the_target_of_a_review_is_spared() -> None:
    assert due(entry(1), entry(2), entry(3), keep=1, protected=("r1",)) == ["r2"]


class Pipeline:
    """A pipeline with runs that have ended, each with an evaluation."""

    def __init__(self, storage: Path, count: int) -> None:
        self.storage = storage
        self.runs = storage / "acme" / "close" / "runs"
        self.evaluations = storage / "acme" / "close" / "evaluation" / "runs"
        for number in range(1, count + 1):
            self._run(f"r{number}", AT + timedelta(minutes=number))

    def _run(self, run_id: str, at: datetime) -> None:
        name = folders.allocate(self.storage, "acme", "close", "sched", run_id, lasting=False)
        identity = RunIdentity(
            run_kind="schedule",
            run_id=run_id,
            workspace="acme",
            schedule_id="s1",
            scheduled_for=at,
            trigger_source=Origin.CRON,
            execution_id=f"e-{run_id}",
            run_folder=name,
            plan_revision=1,
        )
        documents.record_metadata(self.runs / name, identity, at, started=True, status=RunState.SUCCEEDED)
        documents.write(self.runs / name, identity, "result", {}, step_id="one", lasting=False)
        documents.write(self.evaluations / name, identity, "score", {}, lasting=False)

    def expire(self, keep: int) -> None:
        going = retention.due(index.read(self.runs).runs, keep, (), NOW)
        retention.expire(self.storage, "acme", "close", going, NOW)

    def names(self, tree: Path) -> list[str]:
        return sorted(name for name in os.listdir(tree) if not name.startswith(".") and name != index.NAME)

    def expired(self) -> list[str]:
        return [entry.folder for entry in index.read(self.runs).runs if entry.expired_at == NOW]


def test_runs_and_evaluations_go_together_and_the_index_says_so(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, 4)
    pipeline.expire(keep=1)
    assert pipeline.names(pipeline.runs) == pipeline.names(pipeline.evaluations) == ["iteration-4-sched"]
    assert pipeline.expired() == ["iteration-1-sched", "iteration-2-sched", "iteration-3-sched"]
    assert not (pipeline.runs / retention.EXPIRED).exists()
    assert folders.place_of(tmp_path, "acme", "close", "r1") is None


def test_a_second_sweep_changes_nothing(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, 3)
    pipeline.expire(keep=1)
    before = index.read(pipeline.runs)
    pipeline.expire(keep=1)
    assert index.read(pipeline.runs) == before


def test_the_latest_run_stays_the_latest_when_its_files_are_gone(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, 2)
    entries = index.read(pipeline.runs).runs
    retention.expire(tmp_path, "acme", "close", entries, NOW)
    latest = index.latest(index.read(pipeline.runs).runs).latest
    assert latest is not None
    assert (latest.run_id, latest.expired_at) == ("r2", NOW)


def test_the_index_forgets_the_oldest_of_very_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "REMEMBERED", 2)
    pipeline = Pipeline(tmp_path, 5)
    pipeline.expire(keep=1)
    assert [entry.run_id for entry in index.read(pipeline.runs).runs] == ["r3", "r4", "r5"]


class Interrupted(Exception):
    pass


STEPS = ["rename", "makedirs", "unlink", "rmdir"]


@pytest.mark.parametrize("at", range(14))
def test_interrupted_anywhere_it_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    pipeline = Pipeline(tmp_path, 3)
    calls = itertools.count()
    for name in STEPS:
        real = getattr(os, name)

        def interrupted(*args: Any, real: Any = real, **kwargs: Any) -> Any:
            if next(calls) == at:
                raise Interrupted
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, interrupted)
    try:
        pipeline.expire(keep=1)
    except Interrupted:
        for folder in pipeline.names(pipeline.runs):
            assert (pipeline.runs / folder / "steps" / "one" / "result-1.json").exists(), "half a run is to be seen"
    monkeypatch.undo()
    pipeline.expire(keep=1)
    assert pipeline.names(pipeline.runs) == pipeline.names(pipeline.evaluations) == ["iteration-3-sched"]
    assert pipeline.expired() == ["iteration-1-sched", "iteration-2-sched"]
    assert not (pipeline.runs / retention.EXPIRED).exists()


EXPIRE = """
import sys
from pathlib import Path
from tests.evidence.test_retention import NOW, index, retention
storage = Path(sys.argv[1])
runs = storage / "acme" / "close" / "runs"
print("ready", flush=True)
for keep in range(59, 0, -1):
    retention.expire(storage, "acme", "close", retention.due(index.read(runs).runs, keep, (), NOW), NOW)
    print(keep, flush=True)
"""


def test_killed_sweeps_are_completed(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, 60)
    for lines in (1, 3, 8, 15):
        with subprocess.Popen(
            [sys.executable, "-c", EXPIRE, str(tmp_path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as sweeper:
            assert sweeper.stdout is not None
            list(itertools.islice(sweeper.stdout, lines))
            sweeper.kill()
    pipeline.expire(keep=1)
    assert pipeline.names(pipeline.runs) == pipeline.names(pipeline.evaluations) == ["iteration-60-sched"]
    assert len(pipeline.expired()) == 59
