"""The one folder that holds a one-machine Almanac, and what later commands read from it.

.almanac/
├── version        layout version of this folder
├── token          bearer token of the API, for its owner alone (mode 0600)
├── secret.key     seals secret parameters, for its owner alone (mode 0600); what is sealed is lost without it
├── config.json    ports in use: {"temporal": 7233, "ui": 8233, "api": 8400}
├── temporal.db    Temporal's database
├── postgres/      PostgreSQL's data
├── storage/       run folders
├── logs/          one file per part
├── lock           held while `almanac up` runs
└── .gitignore     so that none of this is committed by accident
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from domain.errors import Conflict, NotFound

DATA_VERSION = 1
"""Raised with every change of the layout that an older Almanac could not read."""


@dataclass(frozen=True, slots=True)
class Ports:
    """TCP ports on 127.0.0.1."""

    temporal: int
    ui: int
    api: int


class DataFolder:
    """The folder at `root`; nothing is read or written before a method is called."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        self.token_file = self.root / "token"
        self.key_file = self.root / "secret.key"
        self.storage = self.root / "storage"
        self.logs = self.root / "logs"
        self._version = self.root / "version"
        self._config = self.root / "config.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make or check the folder and hold it for one `almanac up`.

        Raises Conflict: `embedded.data_newer` (written by a newer Almanac), `embedded.data_foreign` (holds
        something else), `embedded.data_unusable` (can't be made or written), `embedded.already_running`.
        """
        self._check()
        try:
            self._lay_out()
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise Conflict(
                "embedded.data_unusable",
                f"the data folder {self.root} can't be used: {error.strerror}",
                hint="choose another with --data",
            ) from error
        try:
            self._take(lock)
            self._ensure_secret(self.token_file, secrets.token_urlsafe(32))
            self._ensure_secret(self.key_file, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
            yield
        finally:
            os.close(lock)

    def token(self) -> str:
        """The API's bearer token. Raises NotFound `embedded.not_set_up`."""
        return self._read(self.token_file).strip()

    def saved_ports(self) -> Ports | None:
        """The ports of the last start; None before the first."""
        if not self._config.exists():
            return None
        return Ports(**json.loads(self._config.read_text()))

    def save_ports(self, ports: Ports) -> None:
        _write(self._config, json.dumps(asdict(ports)) + "\n", mode=0o644)

    def api_url(self) -> str:
        """`http://127.0.0.1:PORT` of the last start. Raises NotFound `embedded.not_set_up`."""
        ports = Ports(**json.loads(self._read(self._config)))
        return f"http://127.0.0.1:{ports.api}"

    def _read(self, file: Path) -> str:
        try:
            return file.read_text()
        except FileNotFoundError:
            raise NotFound(
                "embedded.not_set_up",
                f"there is no Almanac in {self.root}",
                hint="start one with `almanac up`, or name its folder with --data",
            ) from None

    def _check(self) -> None:
        if not self._version.exists():
            if self.root.is_dir() and any(self.root.iterdir()):
                raise Conflict(
                    "embedded.data_foreign",
                    f"{self.root} is not empty and holds no Almanac",
                    hint="choose an empty or a new folder with --data",
                )
            return
        found = self._version.read_text().strip()
        if not (found.isascii() and found.isdigit()) or int(found) > DATA_VERSION:
            raise Conflict(
                "embedded.data_newer",
                f"{self.root} was written by a newer Almanac (data version {found}, this one knows {DATA_VERSION})",
                hint="upgrade Almanac, or choose another folder with --data",
            )

    def _lay_out(self) -> None:
        for folder in (self.root, self.storage, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, text in ((self._version, f"{DATA_VERSION}\n"), (self.root / ".gitignore", "*\n")):
            if not file.exists():
                _write(file, text, mode=0o644)

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode() or "unknown"
            raise Conflict(
                "embedded.already_running",
                f"`almanac up` already runs on {self.root} (pid {holder})",
                hint="use that one, or choose another folder with --data",
            ) from None
        os.truncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())

    def _ensure_secret(self, file: Path, fresh: str) -> None:
        if not file.exists():
            _write(file, f"{fresh}\n", mode=0o600)
        file.chmod(0o600)


def _write(file: Path, text: str, *, mode: int) -> None:
    """Write the whole file or nothing, never readable by more than `mode` allows."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    fresh.rename(file)
