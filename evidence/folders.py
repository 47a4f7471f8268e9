"""Run folders: `<storage>/<workspace>/<pipeline>/runs/iteration-N…`, each bound to one run for ever.

    iteration-0          the mutable slot of a manual run
    iteration-N          what a manual run left when the next one took the slot
    iteration-N-sched    an occurrence or a Run now of a schedule; immutable
    iteration-N-hook     a webhook's invocation; immutable

All families draw N from one number space and are bound through one book (`evidence.book`), so asking again answers
the same folder without a search. A crash between a number and its owner leaves the number unused; a crash after
leaves a folder that the next call completes, because all that matters of it is in the book.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from evidence import durable
from evidence.book import SLOT, Book, RunFolder

MARKER = ".schedule-run-id"
"""The file in a run folder that names its owner."""

OCCUPIED = frozenset({errno.ENOTEMPTY, errno.EEXIST})
"""How a folder says that it can't be replaced, because there is something in it."""

NOBODY = "unknown"


class FolderUnwritable(Exception):
    """The run has no folder it may write to, so it must not start. `message` is a sentence for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def run_folder_path(storage: Path, workspace: str, pipeline: str, name: str) -> Path:
    """Where the run folder `name` is. Raises ValueError when that is no run folder or not inside the storage."""
    if RunFolder.parse(name) is None:
        raise ValueError(f"'{name}' is not the name of a run folder")
    return Path(runs_directory(storage, workspace, pipeline)) / name


def allocate(
    storage: Path,
    workspace: str,
    pipeline: str,
    family: Literal["sched", "hook"],
    run_id: str,
    *,
    lasting: bool = True,
) -> str:
    """The name of the run's own folder, which exists when this returns. The same run always gets the same
    folder, whoever asks, however often, and wherever an earlier call broke off. With `lasting` no power cut gives it to
    another run from when this returns; without, that is the caller's to wait for. Raises FolderUnwritable."""
    with _told_in_a_sentence(storage, workspace, pipeline):
        runs = runs_directory(storage, workspace, pipeline)
        book = Book(runs)
        name = book.owned_by(run_id) or book.give(run_id, family)
        bind(f"{runs}/{name}", run_id)
        if lasting:
            durable.sync(book.directory)
        return name


def take_slot(storage: Path, workspace: str, pipeline: str, run_id: str) -> str:
    """Gives the manual slot to the run and answers the folder's name: `iteration-0`, or the run's own `iteration-N`
    when another manual run has had the slot since. Whoever had it before is moved to its own `iteration-N`.
    Folders of the other families are never touched. The caller sees to it that no manual run is active. Repeating
    it changes nothing, and completes a call that broke off. Raises FolderUnwritable."""
    with _told_in_a_sentence(storage, workspace, pipeline):
        runs = runs_directory(storage, workspace, pipeline)
        book = Book(runs)
        home = book.owned_by(run_id) or book.give(run_id, "manual")
        durable.sync(book.directory)
        if RunFolder.parse(home) != RunFolder(_number(home), "manual"):
            raise ValueError(f"the run '{run_id}' owns {home} and is not a manual one")
        while not (place := _place(runs, home, run_id)):
            _move_in(runs, home, run_id)
        durable.sync(runs)
        return place


def slot_owner(storage: Path, workspace: str, pipeline: str) -> str | None:
    """The run that has the manual slot now. Raises FolderUnwritable."""
    with _told_in_a_sentence(storage, workspace, pipeline):
        return owner_of(f"{runs_directory(storage, workspace, pipeline)}/{SLOT}")


def place_of(storage: Path, workspace: str, pipeline: str, run_id: str) -> str | None:
    """The name of the folder in which the run's files are now; None when it has none (any more). Raises OSError, and
    ValueError for what isn't a path inside the storage."""
    runs = runs_directory(storage, workspace, pipeline)
    name = Book(runs).owned_by(run_id)
    return None if name is None else _place(runs, name, run_id)


def review_folder_path(storage: Path, workspace: str, pipeline: str, run_id: str) -> Path:
    """Where a review by the pipeline keeps its own documents: it is no run folder, for a review produces nothing.
    Raises ValueError when that is not inside the storage."""
    if "/" in run_id or run_id in ("", ".", ".."):
        raise ValueError(f"'{run_id}' is not the id of a run")
    return Path(runs_directory(storage, workspace, pipeline, tree="reviews")) / run_id


def make_review_folder(storage: Path, workspace: str, pipeline: str, run_id: str) -> None:
    """Repeating it changes nothing. Raises FolderUnwritable."""
    with _told_in_a_sentence(storage, workspace, pipeline):
        folder = review_folder_path(storage, workspace, pipeline, run_id)
        durable.make_directory(folder)
        bind(os.fspath(folder), run_id)


def runs_directory(storage: Path, workspace: str, pipeline: str, *, tree: str = "runs") -> str:
    """Where a pipeline's run folders are; `tree` is `runs`, `evaluation/runs` or `reviews`. Raises ValueError when that
    is not inside the storage."""
    segments = [workspace, *pipeline.split("/")]
    if "/" in workspace or any(segment in ("", ".", "..") or "\0" in segment for segment in segments):
        raise ValueError(f"'{workspace}/{pipeline}' is not a path inside the storage")
    path = os.fspath(storage)
    for segment in (*segments, *tree.split("/")):
        path = f"{path}/{segment}"
        if os.path.islink(path) and not Path(path).resolve().is_relative_to(storage.resolve()):
            raise ValueError(f"{path} leads out of the storage")
    return path


def owner_of(folder: str) -> str | None:
    """The run whose folder it is, by its marker. Raises OSError, but not for a marker that is missing."""
    try:
        with open(f"{folder}/{MARKER}", encoding="utf-8") as file:
            return file.read() or None
    except FileNotFoundError:
        return None


def bind(folder: str, run_id: str) -> None:
    """Makes the folder and its marker, as far as they are missing. Raises OSError, and ValueError when it is another
    run's."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    marker = f"{folder}/{MARKER}"
    try:
        descriptor = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    except FileExistsError:
        owner = owner_of(folder)
        if owner is None:
            # Being written this moment, or emptied by a power cut.
            durable.replace(Path(marker), run_id.encode(), mode=0o444, lasting=False)
        elif owner != run_id:
            raise ValueError(f"{os.path.basename(folder)} belongs to the run '{owner}'") from None
        return
    with open(descriptor, "wb", buffering=0) as file:
        file.write(run_id.encode())


# The manual slot ------------------------------------------------------------------------------------------
#
# A manual run owns a number from the start, and the slot is only where its folder is for a while. So where a
# folder goes when it leaves the slot is known before anybody moves it, and every step is one rename that fails
# when somebody else was faster: a folder with a marker in it is never replaced.


def _place(runs: str, name: str, run_id: str) -> str | None:
    """Where the folder that the book calls `name` is."""
    if os.path.isdir(f"{runs}/{name}"):
        return name
    if RunFolder(_number(name), "manual") == RunFolder.parse(name) and owner_of(f"{runs}/{SLOT}") == run_id:
        return SLOT
    # It may have left the slot between the two looks.
    return name if os.path.isdir(f"{runs}/{name}") else None


def _move_in(runs: str, home: str, run_id: str) -> None:
    """One try to make the slot the run's. The folder is made aside with its marker in it, so that nobody ever sees a
    slot without an owner."""
    draft = f"{runs}/.{home}"
    bind(draft, run_id)
    try:
        os.rename(draft, f"{runs}/{SLOT}")
    except FileNotFoundError:
        return  # somebody else who acts for the same run moved it in
    except OSError as error:
        if error.errno not in OCCUPIED:
            raise
        _clear_slot(runs)


def _clear_slot(runs: str) -> None:
    occupant = owner_of(f"{runs}/{SLOT}")
    home = occupant and Book(runs).owned_by(occupant)
    if not home:
        # Older than the book, or copied from elsewhere: it gets a number like everybody else.
        home = str(RunFolder(Book(runs).take_number(occupant or NOBODY), "manual"))
    evaluations = f"{os.path.dirname(runs)}/evaluation/runs"
    for tree in (evaluations, runs):
        _move(tree, SLOT, home)
    _send_home(runs, home, occupant)


def _send_home(runs: str, at: str, expected: str | None) -> None:
    """Between the look at the slot and the move somebody else may have had the slot in turn, and its folder be moved
    in place of the one that was meant. Then it goes where it belongs."""
    owner = owner_of(f"{runs}/{at}")
    own = Book(runs).owned_by(owner) if owner is not None and owner != expected else None
    if own is not None and own != at:
        _move(runs, at, own)


def _move(tree: str, name: str, to: str) -> None:
    """Moves a folder unless it is gone, or its place is taken: then somebody else was faster."""
    try:
        os.rename(f"{tree}/{name}", f"{tree}/{to}")
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in OCCUPIED:
            raise


def _number(name: str) -> int:
    folder = RunFolder.parse(name)
    return folder.number if folder else 0


@contextlib.contextmanager
def _told_in_a_sentence(storage: Path, workspace: str, pipeline: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise FolderUnwritable(
            f"No run folder for pipeline '{pipeline}' below {storage / workspace}: {_cause(error)}. "
            "Make the storage writable for the workers and start the run again."
        ) from error


def _cause(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error)
