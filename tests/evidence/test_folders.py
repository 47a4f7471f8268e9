"""Run folders: one number space, one owner each, and the same answer however often and wherever asked."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from evidence.book import Family, RunFolder
from evidence.folders import MARKER, FolderUnwritable, allocate, run_folder_path

PROCESSES = 4


def runs_of(storage: Path) -> Path:
    return storage / "acme" / "finance" / "close" / "runs"


def ask(storage: Path, run_id: str, family: str = "sched") -> str:
    assert family in ("sched", "hook")
    return allocate(storage, "acme", "finance/close", "hook" if family == "hook" else "sched", run_id)


def ask_for_many(storage: Path, run_ids: list[str]) -> dict[str, str]:
    return {run_id: ask(storage, run_id, "hook" if index % 3 == 0 else "sched") for index, run_id in enumerate(run_ids)}


def in_processes(storage: Path, shares: list[list[str]]) -> list[dict[str, str]]:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(ask_for_many, itertools.repeat(storage), shares))


def owner(storage: Path, name: str) -> str:
    return (runs_of(storage) / name / MARKER).read_text()


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("iteration-0", RunFolder(0, "manual")),
        ("iteration-12", RunFolder(12, "manual")),
        ("iteration-7-sched", RunFolder(7, "sched")),
        ("iteration-7-hook", RunFolder(7, "hook")),
        ("iteration-421-sched/linkedin", RunFolder(421, "sched", "linkedin")),
        ("iteration-0/mail_2", RunFolder(0, "manual", "mail_2")),
    ],
)
def test_a_name_is_taken_apart_and_put_together(name: str, folder: RunFolder) -> None:
    assert RunFolder.parse(name) == folder
    assert str(folder) == name


@pytest.mark.parametrize(
    "name",
    [
        *("iteration-0-sched", "iteration-0-hook", "iteration-07", "iteration--1", "iteration-1-other", "iteration-"),
        *("iteration-1-sched/", "iteration-1-sched/work", "iteration-1/steps", "iteration-1/..", "iteration-1/A"),
        *(
            "iteration-1-sched ",
            "iteration-1-sched\n",
            "iteration-\u0661",
            "Iteration-1",
            "../iteration-1",
            ".numbers",
            "",
        ),
    ],
)
def test_other_names_are_no_run_folders(name: str) -> None:
    assert RunFolder.parse(name) is None
    with pytest.raises(ValueError, match="not the name of a run folder"):
        run_folder_path(Path("/storage"), "acme", "close", name)


def test_the_first_folder_is_number_one_and_names_its_owner(tmp_path: Path) -> None:
    assert ask(tmp_path, "run-a") == "iteration-1-sched"
    assert owner(tmp_path, "iteration-1-sched") == "run-a"
    assert run_folder_path(tmp_path, "acme", "finance/close", "iteration-1-sched").is_dir()


def test_the_families_share_the_numbers(tmp_path: Path) -> None:
    assert [ask(tmp_path, "a"), ask(tmp_path, "b", "hook"), ask(tmp_path, "c")] == [
        "iteration-1-sched",
        "iteration-2-hook",
        "iteration-3-sched",
    ]


def test_pipelines_count_for_themselves(tmp_path: Path) -> None:
    assert allocate(tmp_path, "acme", "a", "sched", "run-1") == "iteration-1-sched"
    assert allocate(tmp_path, "acme", "a/b", "sched", "run-2") == "iteration-1-sched"
    assert allocate(tmp_path, "other", "a", "sched", "run-3") == "iteration-1-sched"


def test_a_run_keeps_its_folder(tmp_path: Path) -> None:
    first = ask(tmp_path, "run-a")
    ask(tmp_path, "run-b")
    assert ask(tmp_path, "run-a") == first
    assert ask(tmp_path, "run-a", "hook") == first


def test_the_marker_can_not_be_written(tmp_path: Path) -> None:
    folder = runs_of(tmp_path) / ask(tmp_path, "run-a")
    assert (folder / MARKER).stat().st_mode & 0o222 == 0


def test_processes_that_ask_at_once_never_share_a_folder(tmp_path: Path) -> None:
    shares = [[f"run-{process}-{index}" for index in range(100)] for process in range(PROCESSES)]
    answers = in_processes(tmp_path, shares)
    names = {run_id: name for answer in answers for run_id, name in answer.items()}
    numbers = [folder.number for name in names.values() if (folder := RunFolder.parse(name))]
    assert sorted(numbers) == list(range(1, 401))
    assert all(owner(tmp_path, name) == run_id for run_id, name in names.items())


def test_processes_that_ask_for_the_same_run_get_the_same_folder(tmp_path: Path) -> None:
    share = [f"run-{index}" for index in range(100)]
    answers = in_processes(tmp_path, [share] * PROCESSES)
    assert all(answer == answers[0] for answer in answers)
    assert len(set(answers[0].values())) == len(share)
    assert {name for name in os.listdir(runs_of(tmp_path)) if RunFolder.parse(name)} == set(answers[0].values())


ALLOCATE_FOR_EVER = """
import itertools, pathlib, sys
from evidence.folders import allocate
for index in itertools.count():
    allocate(pathlib.Path(sys.argv[1]), "acme", "finance/close", "sched", f"run-{index}")
    print(index, flush=True)
"""


def test_killed_allocators_leave_nothing_that_breaks(tmp_path: Path) -> None:
    reached = 0
    for kill_after in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", ALLOCATE_FOR_EVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as allocator:
            assert allocator.stdout is not None
            for line in itertools.islice(allocator.stdout, reached + kill_after + 1):
                reached = max(reached, int(line))
            allocator.kill()
    names = ask_for_many(tmp_path, [f"run-{index}" for index in range(reached + 50)])
    assert len(set(names.values())) == len(names)
    assert all(owner(tmp_path, name) == run_id for run_id, name in names.items())


def broken_off_before_the_owner_entry(storage: Path) -> None:
    ask(storage, "run-before")
    numbers = runs_of(storage) / ".numbers"
    (numbers / "2").symlink_to("run-x")


def broken_off_before_the_folder(storage: Path) -> None:
    folder = runs_of(storage) / ask(storage, "run-x")
    (folder / MARKER).unlink()
    folder.rmdir()


def broken_off_before_the_marker(storage: Path) -> None:
    folder = runs_of(storage) / ask(storage, "run-x")
    (folder / MARKER).unlink()


def broken_off_with_the_marker_half_written(storage: Path) -> None:
    broken_off_before_the_marker(storage)
    (runs_of(storage) / "iteration-1-sched" / f".{MARKER}.draft").write_text("run")


def emptied_by_a_power_cut(storage: Path) -> None:
    broken_off_before_the_marker(storage)
    (runs_of(storage) / "iteration-1-sched" / MARKER).touch(mode=0o444)


def broken_off_before_the_latest_number(storage: Path) -> None:
    ask(storage, "run-x")
    (runs_of(storage) / ".numbers" / "latest").unlink()
    (runs_of(storage) / ".numbers" / "latest.1").symlink_to("1")


@pytest.mark.parametrize(
    "broken_off",
    [
        broken_off_before_the_owner_entry,
        broken_off_before_the_folder,
        broken_off_before_the_marker,
        broken_off_with_the_marker_half_written,
        emptied_by_a_power_cut,
        broken_off_before_the_latest_number,
    ],
)
def test_a_call_that_broke_off_is_completed_by_the_next(tmp_path: Path, broken_off: object) -> None:
    assert callable(broken_off)
    broken_off(tmp_path)
    name = ask(tmp_path, "run-x")
    assert owner(tmp_path, name) == "run-x"
    other = ask(tmp_path, "run-y")
    assert RunFolder.parse(other) != RunFolder.parse(name)
    assert owner(tmp_path, other) == "run-y"
    assert ask(tmp_path, "run-x") == name


@pytest.mark.parametrize("latest", [None, "0", "1", "nonsense", "-4"])
def test_a_wrong_or_missing_latest_number_costs_no_folder(tmp_path: Path, latest: str | None) -> None:
    ask(tmp_path, "run-a")
    ask(tmp_path, "run-b")
    entry = runs_of(tmp_path) / ".numbers" / "latest"
    entry.unlink()
    if latest is not None:
        entry.symlink_to(latest)
    assert ask(tmp_path, "run-c") == "iteration-3-sched"


@pytest.mark.parametrize("family", ["manual", "sched", "hook"])
def test_a_folder_older_than_the_bookkeeping_keeps_its_number(tmp_path: Path, family: Family) -> None:
    (runs_of(tmp_path) / str(RunFolder(41, family))).mkdir(parents=True)
    assert ask(tmp_path, "run-a") == "iteration-42-sched"
    (runs_of(tmp_path) / str(RunFolder(43, family))).mkdir()
    assert ask(tmp_path, "run-b") == "iteration-44-sched"


def test_the_number_of_a_deleted_folder_is_not_given_again(tmp_path: Path) -> None:
    folder = runs_of(tmp_path) / ask(tmp_path, "run-a")
    (folder / MARKER).unlink()
    folder.rmdir()
    (runs_of(tmp_path) / ".numbers" / "latest").unlink()
    assert ask(tmp_path, "run-b") == "iteration-2-sched"


def test_asking_lists_no_directory_however_many_folders_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ask(tmp_path, "run-a")

    def listing(path: object = ".") -> list[str]:
        raise AssertionError(f"{path} was listed")

    monkeypatch.setattr(os, "listdir", listing)
    monkeypatch.setattr(os, "scandir", listing)
    assert ask(tmp_path, "run-a") == name
    assert ask(tmp_path, "run-b") == "iteration-2-sched"


def test_a_folder_that_is_marked_as_somebody_elses_is_refused(tmp_path: Path) -> None:
    folder = runs_of(tmp_path) / ask(tmp_path, "run-a")
    (folder / MARKER).unlink()
    (folder / MARKER).write_text("run-z")
    with pytest.raises(FolderUnwritable, match="iteration-1-sched belongs to the run 'run-z'"):
        ask(tmp_path, "run-a")


def test_an_unwritable_storage_is_refused_in_a_sentence(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    storage.write_text("a file")
    with pytest.raises(
        FolderUnwritable, match=r"No run folder for pipeline 'finance/close' .*Not a directory"
    ) as refusal:
        ask(storage, "run-a")
    assert refusal.value.message.endswith("and start the run again.")


@pytest.mark.parametrize(
    ("workspace", "pipeline"),
    [
        *(("..", "p"), ("", "p"), (".", "p"), ("a/b", "p"), ("/etc", "p"), ("a\0b", "p")),
        *(("acme", ""), ("acme", ".."), ("acme", "../x"), ("acme", "a/../../x"), ("acme", "/etc"), ("acme", "a//b")),
        *(("acme", "a/"), ("acme", "a\0")),
    ],
)
def test_nothing_leaves_the_storage(tmp_path: Path, workspace: str, pipeline: str) -> None:
    storage = tmp_path / "storage"
    storage.mkdir()
    with pytest.raises(FolderUnwritable, match="not a path inside the storage"):
        allocate(storage, workspace, pipeline, "sched", "run-a")
    assert list(tmp_path.rglob("*")) == [storage]


def test_no_link_leads_out_of_the_storage(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    storage = tmp_path / "storage"
    (storage / "acme").mkdir(parents=True)
    (storage / "acme" / "p").symlink_to(outside)
    with pytest.raises(FolderUnwritable, match="leads out of the storage"):
        allocate(storage, "acme", "p", "sched", "run-a")
    assert not list(outside.iterdir())
