"""`python -m tests.evidence.killing SCENARIO FOLDER`: kills a process with SIGKILL before each of the steps in which it
changes or opens anything on the disk, one process for each step, and looks at what the next one finds.

A program of its own, because it forks itself: nothing else may go on in it. It prints how many steps there were.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from domain.identity import RunIdentity
from domain.run import Origin, RunState
from evidence import documents, folders, index, reader, retention
from evidence.book import SLOT

STEPS = frozenset({"open", "os.mkdir", "os.rename", "os.symlink", "os.link", "os.remove", "os.rmdir", "os.chmod"})
"""What Python tells an audit hook of, before it is done."""

AT = datetime(2027, 3, 14, 7, tzinfo=UTC)
NOW = AT + timedelta(days=2)


class Scenario(Protocol):
    def before(self, storage: Path) -> None:
        """What is there already."""

    def act(self, storage: Path) -> None:
        """What is killed."""

    def after(self, storage: Path) -> None:
        """What has to hold, wherever that was."""


def runs_of(storage: Path) -> Path:
    return storage / "acme" / "close" / "runs"


def identity(run_id: str, folder: str) -> RunIdentity:
    manual = folder == SLOT
    return RunIdentity(
        run_kind="manual" if manual else "schedule",
        run_id=run_id,
        workspace="acme",
        schedule_id=None if manual else "s1",
        scheduled_for=None,
        trigger_source=Origin.MANUAL if manual else Origin.RUN_NOW,
        execution_id=f"e-{run_id}",
        run_folder=folder,
        plan_revision=None if manual else 1,
    )


def run(storage: Path, number: int, *, manual: bool = False) -> str:
    """A run that has ended, with a document and an evaluation; answers its folder."""
    run_id, at = f"r{number}", AT + timedelta(minutes=number)
    name = allocate(storage, run_id, manual=manual)
    whose = identity(run_id, name)
    for tree, kind in ((runs_of(storage), "result"), (evaluations_of(storage), "score")):
        documents.write(tree / name, whose, kind, {"run": run_id}, lasting=False)
    documents.record_metadata(runs_of(storage) / name, whose, at, started=True, status=RunState.SUCCEEDED)
    return name


def evaluations_of(storage: Path) -> Path:
    return storage / "acme" / "close" / "evaluation" / "runs"


def allocate(storage: Path, run_id: str, *, manual: bool = False) -> str:
    if manual:
        return folders.take_slot(storage, "acme", "close", run_id)
    return folders.allocate(storage, "acme", "close", "sched", run_id)


def check_own(storage: Path, run_id: str) -> None:
    """The run's folder is where it is looked for, with its documents and those of its evaluation, and no others."""
    name = folders.place_of(storage, "acme", "close", run_id)
    assert name is not None, f"{run_id} has lost its folder"
    evidence = reader.read(runs_of(storage) / name)
    scores = reader.read(evaluations_of(storage) / name, owner=evidence.metadata)
    for found in (evidence, scores):
        assert not found.quarantined, found.quarantined
        assert [one.body for one in found.documents] == [{"run": run_id}], (name, found.documents)


class Allocation:
    """A run asks for its folder."""

    def before(self, storage: Path) -> None:
        run(storage, 1)

    def act(self, storage: Path) -> None:
        allocate(storage, "killed")

    def after(self, storage: Path) -> None:
        other = allocate(storage, "other")
        own = allocate(storage, "killed")
        assert own == allocate(storage, "killed")
        assert len({own, other, "iteration-1-sched"}) == 3
        for name, run_id in ((own, "killed"), (other, "other"), ("iteration-1-sched", "r1")):
            assert folders.owner_of(f"{runs_of(storage)}/{name}") == run_id
        check_own(storage, "r1")


class Rotation:
    """A manual run takes the slot from another."""

    def before(self, storage: Path) -> None:
        run(storage, 1, manual=True)
        run(storage, 2)
        run(storage, 3, manual=True)

    def act(self, storage: Path) -> None:
        allocate(storage, "killed", manual=True)

    def after(self, storage: Path) -> None:
        assert allocate(storage, "killed", manual=True) == SLOT
        assert folders.owner_of(f"{runs_of(storage)}/{SLOT}") == "killed"
        for run_id in ("r1", "r2", "r3"):
            check_own(storage, run_id)
        assert run(storage, 4, manual=True) == SLOT
        for run_id in ("r1", "r2", "r3", "r4"):
            check_own(storage, run_id)


class Indexing:
    """A run that ends is noted in its folder's description and in the index."""

    def before(self, storage: Path) -> None:
        run(storage, 1)
        run(storage, 2)
        name = allocate(storage, "killed")
        documents.record_metadata(runs_of(storage) / name, identity("killed", name), AT, started=True)

    def act(self, storage: Path) -> None:
        name = "iteration-3-sched"
        end = AT + timedelta(hours=1)
        documents.record_metadata(runs_of(storage) / name, identity("killed", name), end, status=RunState.FAILED)

    def after(self, storage: Path) -> None:
        known = {entry.run_id: entry.status for entry in index.read(runs_of(storage)).runs}
        assert known.keys() == {"r1", "r2", "killed"}
        assert {known.pop("r1"), known.pop("r2")} == {RunState.SUCCEEDED}
        assert known.pop("killed") in (None, RunState.FAILED)
        self.act(storage)
        entries = index.read(runs_of(storage)).runs
        assert {entry.run_id: entry.status for entry in entries}["killed"] is RunState.FAILED
        assert index.read(runs_of(storage)).runs == index.in_order(index.scan(runs_of(storage)))


class Documents:
    """A step's result is written beside an earlier one."""

    def before(self, storage: Path) -> None:
        run(storage, 1)

    def act(self, storage: Path) -> None:
        name = "iteration-1-sched"
        documents.write(runs_of(storage) / name, identity("r1", name), "result", {"run": "r1"})

    def after(self, storage: Path) -> None:
        evidence = reader.read(runs_of(storage) / "iteration-1-sched")
        assert not evidence.quarantined
        assert {str(one.body) for one in evidence.documents} == {"{'run': 'r1'}"}
        self.act(storage)
        assert len(reader.read(runs_of(storage) / "iteration-1-sched").documents) in (2, 3)


class Sweep:
    """Older runs make room for the newest."""

    def before(self, storage: Path) -> None:
        for number in (1, 2, 3):
            run(storage, number)

    def act(self, storage: Path) -> None:
        going = retention.due(index.read(runs_of(storage)).runs, 1, (), NOW)
        retention.expire(storage, "acme", "close", going, NOW)

    def after(self, storage: Path) -> None:
        for entry in index.read(runs_of(storage)).runs:
            assert entry.run_id is not None
            if entry.expired_at is None:
                check_own(storage, entry.run_id)
        self.act(storage)
        for tree in (runs_of(storage), evaluations_of(storage)):
            kept = [name for name in os.listdir(tree) if name.startswith("iteration-")]
            assert kept == ["iteration-3-sched"]
            assert not (tree / retention.EXPIRED).exists()
        expired = [entry.folder for entry in index.read(runs_of(storage)).runs if entry.expired_at]
        assert expired == ["iteration-1-sched", "iteration-2-sched"]
        check_own(storage, "r3")


SCENARIOS: dict[str, type[Scenario]] = {
    kind.__name__.lower(): kind for kind in (Allocation, Rotation, Indexing, Documents, Sweep)
}


def die_at(step: int) -> None:
    """From now on this process lives for so many steps."""
    left = step

    def count(event: str, _: object) -> None:
        nonlocal left
        if event in STEPS:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(count)


def killed(scenario: Scenario, storage: Path, step: int) -> bool:
    """Whether a process that does this was killed at that step; False where it was done before."""
    process = os.fork()
    if process == 0:
        die_at(step)
        scenario.act(storage)
        os._exit(0)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "it failed by itself"
    return False


def kill_at_each_step(scenario: Scenario, folder: Path) -> int:
    ready = folder / "ready"
    scenario.before(ready)
    # Whatever is loaded at the first use is no step.
    warm = folder / "warm"
    shutil.copytree(ready, warm, symlinks=True)
    scenario.act(warm)
    scenario.after(warm)
    step = 0
    while True:
        storage = folder / str(step)
        shutil.copytree(ready, storage, symlinks=True)
        if not killed(scenario, storage, step):
            return step
        scenario.after(storage)
        step += 1


if __name__ == "__main__":
    print(kill_at_each_step(SCENARIOS[sys.argv[1]](), Path(sys.argv[2])))
