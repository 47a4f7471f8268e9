"""Seals what a person gives in secret, and opens it where a step needs it.

The keys are in one file, a line each. The first seals, all of them open: a new key is put before the old one, which
goes when nothing is sealed with it any more. What is sealed for one parameter of one pipeline opens for no other.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class KeyUnusable(Exception):
    """The key file can't be used; the message says why and what to do, in one line."""


class Unopened(Exception):
    """The value was sealed with another key or for another place, or there is no key. Its text says which."""


class Place(NamedTuple):
    """What a value is sealed for."""

    workspace: str
    pipeline: str
    parameter: str


class Vault:
    """The keys of one process; without any, it can neither seal nor open."""

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        """Raises ValueError for what is no key."""
        self._keys = MultiFernet([Fernet(key) for key in keys]) if keys else None

    @classmethod
    def at(cls, path: Path | None) -> Vault:
        """Raises KeyUnusable, also when others than its owner may read the file."""
        if path is None:
            return cls()
        try:
            mode = path.stat().st_mode
            keys = path.read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError) as error:
            raise KeyUnusable(f"The key file {path} can't be read: {error}.") from error
        if stat.S_IMODE(mode) & 0o077:
            raise KeyUnusable(f"The key file {path} can be read by others than its owner: run chmod 600 {path}.")
        if not keys:
            raise KeyUnusable(f"The key file {path} has no key in it.")
        try:
            return cls(tuple(keys))
        except ValueError as error:
            raise KeyUnusable(f"The key file {path} holds something that is no key.") from error

    @property
    def has_key(self) -> bool:
        return self._keys is not None

    def seal(self, text: str, place: Place) -> str:
        """Needs a key."""
        assert self._keys is not None
        return self._keys.encrypt(json.dumps([*place, text]).encode()).decode()

    def open(self, token: str, place: Place) -> str:
        """Raises Unopened."""
        if self._keys is None:
            raise Unopened("there is no key here")
        try:
            *named, text = json.loads(self._keys.decrypt(token))
        except (InvalidToken, ValueError) as error:
            raise Unopened("it was sealed with another key") from error
        if tuple(named) != place:
            raise Unopened("it was given for another parameter")
        return str(text)
