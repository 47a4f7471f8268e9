"""The manual slot: who takes it moves the one before to its own number, and nobody else's folder is ever touched."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from evidence import folders
from evidence.book import Book, RunFolder
from evidence.folders import MARKER, FolderUnwritable, allocate, place_of, take_slot

PROCESSES = 4


def runs_of(storage: Path) -> Path:
    return storage / "acme" / "close" / "runs"


def take(storage: Path, run_id: str) -> str:
    return take_slot(storage, "acme", "close", run_id)


def place(storage: Path, run_id: str) -> str | None:
    return place_of(storage, "acme", "close", run_id)


def owners(storage: Path) -> dict[str, str]:
    """The owner of each folder there is, also of drafts that were left."""
    found = (path for path in runs_of(storage).iterdir() if path.name != ".numbers")
    return {path.name: (path / MARKER).read_text() for path in found}


def write(storage: Path, name: str, text: str) -> None:
    (runs_of(storage) / name / "out.txt").write_text(text)


def read(storage: Path, run_id: str) -> str:
    found = place(storage, run_id)
    assert found is not None
    return (runs_of(storage) / found / "out.txt").read_text()


def test_a_manual_run_has_the_slot_until_the_next_one_takes_it(tmp_path: Path) -> None:
    for run_id in ("a", "b", "c"):
        assert take(tmp_path, run_id) == "iteration-0"
        write(tmp_path, "iteration-0", run_id)
    assert owners(tmp_path) == {"iteration-0": "c", "iteration-1": "a", "iteration-2": "b"}
    assert [read(tmp_path, run_id) for run_id in ("a", "b", "c")] == ["a", "b", "c"]


def test_rotation_leaves_the_other_families_alone(tmp_path: Path) -> None:
    allocate(tmp_path, "acme", "close", "sched", "s")
    take(tmp_path, "a")
    allocate(tmp_path, "acme", "close", "hook", "h")
    before = {name: (runs_of(tmp_path) / name).stat() for name in ("iteration-1-sched", "iteration-3-hook")}
    take(tmp_path, "b")
    assert owners(tmp_path) == {
        "iteration-0": "b",
        "iteration-1-sched": "s",
        "iteration-2": "a",
        "iteration-3-hook": "h",
    }
    assert {name: (runs_of(tmp_path) / name).stat() for name in before} == before


def test_asking_again_rotates_nothing(tmp_path: Path) -> None:
    assert take(tmp_path, "a") == take(tmp_path, "a") == "iteration-0"
    take(tmp_path, "b")
    assert take(tmp_path, "a") == "iteration-1"
    assert owners(tmp_path) == {"iteration-0": "b", "iteration-1": "a"}


def test_a_scheduled_run_gets_no_slot(tmp_path: Path) -> None:
    allocate(tmp_path, "acme", "close", "sched", "s")
    with pytest.raises(FolderUnwritable, match="is not a manual one"):
        take(tmp_path, "s")


def test_a_slot_older_than_the_book_keeps_its_files(tmp_path: Path) -> None:
    (runs_of(tmp_path) / "iteration-0").mkdir(parents=True)
    (runs_of(tmp_path) / "iteration-7").mkdir()
    write(tmp_path, "iteration-0", "old")
    take(tmp_path, "a")
    assert (runs_of(tmp_path) / "iteration-9" / "out.txt").read_text() == "old"
    assert place(tmp_path, "a") == "iteration-0"


def test_an_evaluation_moves_with_its_run(tmp_path: Path) -> None:
    take(tmp_path, "a")
    evaluation = tmp_path / "acme" / "close" / "evaluation" / "runs" / "iteration-0"
    evaluation.mkdir(parents=True)
    (evaluation / "score.json").write_text("1")
    take(tmp_path, "b")
    assert not evaluation.exists()
    assert (evaluation.with_name("iteration-1") / "score.json").read_text() == "1"


def test_whoever_was_moved_by_mistake_goes_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot changes hands, and the first occupant's folder is deleted, between the look at the slot and the move."""
    take(tmp_path, "a")
    look = folders.owner_of
    meanwhile = iter([False, True])

    def slow_look(folder: str) -> str | None:
        owner = look(folder)
        if owner == "a" and next(meanwhile, False):
            take(tmp_path, "b")
            (runs_of(tmp_path) / "iteration-1" / MARKER).unlink()
            (runs_of(tmp_path) / "iteration-1").rmdir()
        return owner

    monkeypatch.setattr(folders, "owner_of", slow_look)
    take(tmp_path, "c")
    assert {run_id: place(tmp_path, run_id) for run_id in "bc"} == {"b": "iteration-3", "c": "iteration-0"}


def broken_off_before_the_draft(storage: Path) -> None:
    (runs_of(storage) / "iteration-0").rename(runs_of(storage) / "iteration-1")
    Book(str(runs_of(storage))).give("b", "manual")


def broken_off_before_moving_in(storage: Path) -> None:
    broken_off_before_the_draft(storage)
    folders.bind(f"{runs_of(storage)}/.iteration-2", "b")


def broken_off_with_a_draft_without_an_owner(storage: Path) -> None:
    broken_off_before_the_draft(storage)
    (runs_of(storage) / ".iteration-2").mkdir()


@pytest.mark.parametrize(
    "broken_off",
    [broken_off_before_the_draft, broken_off_before_moving_in, broken_off_with_a_draft_without_an_owner],
)
@pytest.mark.parametrize("after", ["b", "c"])
def test_a_rotation_that_broke_off_is_completed_by_the_next(tmp_path: Path, broken_off: object, after: str) -> None:
    take(tmp_path, "a")
    assert callable(broken_off)
    broken_off(tmp_path)
    assert take(tmp_path, after) == "iteration-0"
    take(tmp_path, "b")
    found = {run_id: place(tmp_path, run_id) for run_id in {"a", "b", after}}
    assert found["a"] == "iteration-1"
    assert len(set(found.values())) == len(found)
    assert set(found.values()) == set(owners(tmp_path))


def mix(storage: Path, process: int) -> None:
    for index in range(150):
        take(storage, f"m-{process}-{index}")
        allocate(storage, "acme", "close", "hook" if index % 2 else "sched", f"s-{process}-{index}")


def test_processes_that_allocate_and_rotate_at_once(tmp_path: Path) -> None:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(mix, itertools.repeat(tmp_path, PROCESSES), range(PROCESSES)))
    found = owners(tmp_path)
    expected = {f"{kind}-{p}-{i}" for kind in "ms" for p in range(PROCESSES) for i in range(150)}
    assert sorted(found.values()) == sorted(expected)
    numbers = [folder.number for name in found if (folder := RunFolder.parse(name))]
    assert len(numbers) == len(found)
    slot_owner = found.pop("iteration-0")
    assert slot_owner.startswith("m-")
    for name, run_id in found.items():
        assert place(tmp_path, run_id) == name


ROTATE_FOR_EVER = """
import itertools, pathlib, sys
from evidence.folders import take_slot
for index in itertools.count():
    take_slot(pathlib.Path(sys.argv[1]), "acme", "close", f"run-{index}")
    print(index, flush=True)
"""


def test_killed_rotators_lose_nobodys_folder(tmp_path: Path) -> None:
    reached = 0
    for kill_after in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", ROTATE_FOR_EVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as rotator:
            assert rotator.stdout is not None
            for line in itertools.islice(rotator.stdout, reached + kill_after + 1):
                reached = max(reached, int(line))
            rotator.kill()
    for index in range(reached + 20):
        take(tmp_path, f"run-{index}")
    places = [place(tmp_path, f"run-{index}") for index in range(reached + 20)]
    assert len(set(places)) == len(places)
    found = owners(tmp_path)
    assert [found[str(name)] for name in places] == [f"run-{index}" for index in range(reached + 20)]
