"""The files of a run folder for people who look at it: listed, and opened so that nothing outside can be reached.

A path is opened one directory at a time, and a link is followed nowhere: not by the name that was asked for, and not by
one that a program puts in its place meanwhile.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from domain.values import Value

MOST_LISTED = 10_000

PIECE = 256 << 10


class File(Value):
    path: str
    """Below the run folder, with slashes."""
    bytes: int
    modified_at: datetime
    readable: bool
    """False for a link, a pipe or the like, which is never opened."""


class Listing(Value):
    files: tuple[File, ...]
    """By path."""
    complete: bool
    """False where there are more files than are listed."""


class NoSuchFile(Exception):
    """There is no regular file at this path inside the folder."""


def listed(folder: Path) -> Listing:
    """Raises OSError when the folder can't be listed."""
    found: list[File] = []
    for path in _paths(os.fspath(folder), ""):
        if len(found) == MOST_LISTED:
            return Listing(files=tuple(found), complete=False)
        try:
            known = os.lstat(folder / path)
        except FileNotFoundError:
            continue  # a program at work has deleted it
        modified = datetime.fromtimestamp(known.st_mtime, UTC)
        readable = stat.S_ISREG(known.st_mode)
        found.append(File(path=_printable(path), bytes=known.st_size, modified_at=modified, readable=readable))
    return Listing(files=tuple(found), complete=True)


def open_file(folder: Path, path: str) -> FileIO:
    """The regular file at `path`, which the caller closes. Raises NoSuchFile."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise NoSuchFile(path)
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        for part in parts[:-1]:
            directory = _step(directory, part, os.O_DIRECTORY)
        # A pipe would block, and a device might do anything.
        file = _step(directory, parts[-1], os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise NoSuchFile(path) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NoSuchFile(path)
    return open(file, "rb", buffering=0)


def pieces(file: FileIO, start: int, count: int) -> Iterator[bytes]:
    """`count` bytes from `start` on, or as many as there are, a piece at a time; closes the file at the end."""
    with file:
        while count > 0 and (piece := os.pread(file.fileno(), min(PIECE, count), start)):
            yield piece
            start, count = start + len(piece), count - len(piece)


def _step(directory: int, name: str, flags: int) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=directory)
    finally:
        os.close(directory)


def _paths(root: str, below: str) -> Iterator[str]:
    """In the order of their names, without going through links."""
    with os.scandir(f"{root}/{below}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _paths(root, f"{path}/")
            else:
                yield path


def _printable(path: str) -> str:
    """A name that is no text is shown with U+FFFD, and can't be asked for."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
