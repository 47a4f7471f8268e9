"""Files and directories that are whole or absent, also after a crash or a power cut.

Storage may be shared by several hosts, so nothing here relies on locks: only on creating exclusively and on
renaming, which every POSIX file system does atomically. All functions raise OSError.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def make_directory(directory: str | Path) -> None:
    """Creates it and what is missing above it; one that exists is fine."""
    path = Path(directory)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    except FileNotFoundError:
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
    sync(path.parent)


def create(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Writes a new file. Raises FileExistsError when there is one, which then stays as it is. With `lasting` it
    outlasts a power cut from when this returns; without, it is whole for everybody but need not outlast one."""
    draft = _draft(path, content, 0o444, lasting)
    try:
        os.link(draft, path)
    finally:
        draft.unlink()
    if lasting:
        sync(path.parent)


def replace(path: Path, content: bytes, *, mode: int = 0o644, lasting: bool = True) -> None:
    """Writes a file in place of whatever is there; a reader sees the old or the new. `lasting` as above."""
    draft = _draft(path, content, mode, lasting)
    try:
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    if lasting:
        sync(path.parent)


def note(path: str, text: str) -> None:
    """Leaves a few words under a new name, in one step that has no middle. Raises FileExistsError. The caller syncs
    the directory.

    The words are the target of a symbolic link that leads nowhere: a file would be created first and filled
    later, and between the two nobody could tell a crash from a writer at work.
    """
    os.symlink(text, path)


def noted(path: str) -> str | None:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return None


def sync(path: str | Path) -> None:
    """Waits until the content of a file, or the names in a directory, would outlast a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _draft(path: Path, content: bytes, mode: int, lasting: bool) -> Path:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            if lasting:
                os.fsync(descriptor)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)
