"""Looking at a run's files: all of them, none outside, and a part of a huge one at the cost of the part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evidence import files

SECRET = "not for anybody"  # noqa: S105


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(SECRET)
    folder = tmp_path / "iteration-1-sched"
    (folder / "work" / "deep").mkdir(parents=True)
    (folder / "work" / "deep" / "a.txt").write_text("hello")
    (folder / "b.txt").write_text("b")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    return folder


def content(folder: Path, path: str) -> bytes:
    return b"".join(files.pieces(files.open_file(folder, path), 0, 1 << 40))


def test_files_are_listed_by_path_and_links_are_not_followed(folder: Path) -> None:
    listing = files.listed(folder)
    assert listing.complete
    assert [(file.path, file.readable) for file in listing.files] == [
        ("b.txt", True),
        ("link", False),
        ("pipe", False),
        ("up", False),
        ("work/deep/a.txt", True),
    ]
    assert listing.files[-1].bytes == 5


def test_very_many_files_are_not_listed_to_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LISTED", 2)
    listing = files.listed(folder)
    assert (len(listing.files), listing.complete) == (2, False)


def test_a_file_is_read_as_it_is(folder: Path) -> None:
    assert content(folder, "work/deep/a.txt") == b"hello"


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "/", "../secret", "work/../../secret", "/etc/passwd", "work//deep/a.txt", "b.txt/", "b.txt\0"),
        *("link", "up/secret", "up", "pipe", "work", "absent", "b.txt/x", "./b.txt", "a" * 5000),
    ],
)
def test_nothing_outside_is_opened(folder: Path, path: str) -> None:
    with pytest.raises(files.NoSuchFile):
        files.open_file(folder, path)


def test_a_part_of_a_huge_file_is_read_alone(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.seek(1 << 42)
        file.write(b"end")
    got = list(files.pieces(files.open_file(folder, "huge"), (1 << 42) - 1, 3))
    assert got == [b"\0en"]


def test_a_file_that_shrinks_meanwhile_ends_early(folder: Path) -> None:
    file = files.open_file(folder, "b.txt")
    (folder / "b.txt").write_text("")
    assert list(files.pieces(file, 0, 1)) == []


def test_a_name_that_is_no_text_is_listed(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff")).write_text("x")
    assert "\ufffd" in [file.path for file in files.listed(folder).files]
