"""The one reader of what runs left. It trusts no name and no listing: a document is its folder's own when its identity
agrees with the folder's owner, and what contradicts is set apart with the reason, where people see it.

A document without an identity, as older ones are, is `unknown_legacy`: it is shown, and nothing is made up for it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, JsonValue, ValidationError

from domain.identity import RunIdentity
from domain.values import Value
from evidence import documents, folders

LARGEST_DOCUMENT = 4 << 20
"""Bytes; a larger one is not read."""

WORK = "work"
"""Where programs run: what they leave there is theirs, and no document."""


class Standing(StrEnum):
    OWN = "own"
    """Its identity agrees with the folder's owner."""
    UNKNOWN_LEGACY = "unknown_legacy"
    """It says nothing of its origin."""
    QUARANTINED = "quarantined"
    """It contradicts the folder's owner, or can't be read."""


class Document(Value):
    """One document. What it does not say itself is None."""

    path: str
    """Below the run folder, with slashes."""
    standing: Standing
    why: str | None = None
    """Why it is quarantined, in a sentence for people."""
    kind: str | None = None
    identity: RunIdentity | None = None
    step_id: str | None = None
    created_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    completed_at: AwareDatetime | None = None
    status: str | None = None
    body: JsonValue = None


class Evidence(Value):
    """All that a run folder holds, what is set apart beside it."""

    metadata: documents.RunMetadata | None
    documents: tuple[Document, ...]
    """The run's own and the legacy ones as they came to be; legacy ones, which have no time, first."""
    quarantined: tuple[Document, ...]


class _Wrong(Exception):
    """Why a document has to be set apart."""


def read(folder: Path, owner: documents.RunMetadata | None = None) -> Evidence:
    """What is in a run folder, or in the paired one of an evaluation, which has no description of its own and gets that
    of the run as `owner`. Raises OSError when the folder can't be listed; what is wrong with a single document is
    told beside it."""
    metadata, broken = (owner, None) if owner else _metadata(folder)
    return _read(folder, metadata, broken)


def _read(folder: Path, metadata: documents.RunMetadata | None, broken: Document | None) -> Evidence:
    owner = metadata.identity if metadata else None
    marked = None if owner else folders.owner_of(os.fspath(folder))
    found = [_document(folder, path, owner, marked) for path in _paths(folder)]
    quarantined = [document for document in found if document.standing is Standing.QUARANTINED]
    return Evidence(
        metadata=metadata,
        documents=tuple(sorted((one for one in found if one.standing is not Standing.QUARANTINED), key=_order)),
        quarantined=tuple(sorted((broken, *quarantined) if broken else quarantined, key=lambda one: one.path)),
    )


def by_execution(evidence: Evidence, kind: str) -> dict[str, tuple[Document, ...]]:
    """The run's own documents of a kind, such as `cost` or `score`, by the execution that they are of. Nothing that is
    legacy or quarantined counts, so no run inherits another's."""
    found: dict[str, tuple[Document, ...]] = {}
    for document in evidence.documents:
        if document.kind == kind and document.identity is not None:
            execution_id = document.identity.execution_id
            found[execution_id] = (*found.get(execution_id, ()), document)
    return found


def _metadata(folder: Path) -> tuple[documents.RunMetadata | None, Document | None]:
    """What the folder says of itself, or that saying of it which can't be trusted."""
    try:
        metadata = documents.read_metadata(folder)
    except (OSError, ValidationError):
        return None, _set_apart(documents.METADATA, "It can't be read as the description of a run folder.")
    marked = folders.owner_of(os.fspath(folder))
    if metadata is not None and marked not in (None, metadata.identity.run_id):
        why = f"It describes the run {metadata.identity.run_id}, and the folder is bound to {marked}."
        return None, _set_apart(documents.METADATA, why)
    return metadata, None


def _paths(folder: Path) -> Iterator[str]:
    """The documents below the folder. Links are not followed, so nothing outside is ever read."""
    for directory, directories, names in os.walk(folder):
        directories[:] = sorted(name for name in directories if name != WORK and not name.startswith("."))
        for name in names:
            if name.endswith(".json") and not name.startswith(".") and name != documents.METADATA:
                yield os.path.relpath(os.path.join(directory, name), folder)


def _document(folder: Path, path: str, owner: RunIdentity | None, marked: str | None) -> Document:
    try:
        content = _content(folder / path)
        if "identity" not in content:
            return Document(path=path, standing=Standing.UNKNOWN_LEGACY, body=content)
        document = _as_document(path, content)
    except _Wrong as wrong:
        return _set_apart(path, str(wrong))
    why = _contradiction(document, folder.name, owner, marked)
    return document if why is None else document.model_copy(update={"standing": Standing.QUARANTINED, "why": why})


def _content(path: Path) -> dict[str, Any]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _Wrong(f"It can't be opened: {error.strerror}.") from error
    with open(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            raise _Wrong("It is no regular file.")
        if known.st_size > LARGEST_DOCUMENT:
            raise _Wrong(f"It has {known.st_size} bytes; at most {LARGEST_DOCUMENT} are read.")
        try:
            content = json.loads(file.read(LARGEST_DOCUMENT))
        except (OSError, ValueError, RecursionError) as error:
            raise _Wrong("It is not JSON.") from error
    return content if isinstance(content, dict) else {"content": content}


def _as_document(path: str, content: dict[str, Any]) -> Document:
    try:
        identity = dict(content["identity"])
        step_id = identity.pop("step_id", None)
        told = {name: value for name, value in content.items() if name != "identity"}
        return Document.model_validate(
            {"path": path, "standing": Standing.OWN, "identity": identity, "step_id": step_id, **told}
        )
    except (ValidationError, TypeError, ValueError) as error:
        raise _Wrong("It has an identity that can't be read.") from error


def _contradiction(document: Document, folder: str, owner: RunIdentity | None, marked: str | None) -> str | None:
    identity = document.identity
    assert identity is not None
    if owner is not None:
        field = identity.contradiction(owner)
        theirs, ours = (getattr(identity, field), getattr(owner, field)) if field else (None, None)
        return f"Its {field} is {theirs}, and the folder's is {ours}." if field else None
    if marked is not None and marked not in (identity.run_id, identity.parent_run_id):
        return f"Its run_id is {identity.run_id}, and the folder is bound to {marked}."
    if marked is None and identity.run_folder != folder:
        return f"Its run_folder is {identity.run_folder}, and it lies in {folder}."
    return None


def _set_apart(path: str, why: str) -> Document:
    return Document(path=path, standing=Standing.QUARANTINED, why=why)


def _order(document: Document) -> tuple[datetime, str, int, str]:
    """By when they were written and by which execution; two of one moment by the number that the writer gave them."""
    number = document.path.rpartition("-")[2].removesuffix(".json")
    return (
        document.created_at or datetime.min.replace(tzinfo=UTC),
        document.identity.execution_id if document.identity else "",
        int(number) if number.isdecimal() else 0,
        document.path,
    )
