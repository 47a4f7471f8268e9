"""The command line against a real, listening API."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from api.settings import Settings
from cli.main import main
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel.database import Database
from readmodel.workspaces import Workspaces
from tests.serving import listening, token_in, working


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Terminal:
    """Runs commands in one workspace."""

    url: str
    token_file: Path
    workspace: str
    folder: Path

    async def __call__(self, *arguments: str) -> Ended:
        server = ("--url", self.url, "--token-file", str(self.token_file), "--workspace", self.workspace)
        return await asyncio.to_thread(ran, *arguments, *server)

    def write(self, text: str, name: str = "all.yaml") -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)


def ran(*arguments: str) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(arguments)
    assert isinstance(left.value.code, int)
    return Ended(left.value.code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return token_in(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="package")
async def url(
    token_file: Path,
    postgres: PostgresServer,
    temporal: TemporalServer,
    client: Client,
    database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[str]:
    settings = Settings(database_url=postgres.url, temporal_address=temporal.address, token_file=token_file)
    async with working(client, database, tmp_path_factory.mktemp("storage")), listening(settings) as url:
        yield url


@pytest.fixture
async def almanac(url: str, token_file: Path, database: Database, workspace: str, tmp_path: Path) -> Terminal:
    await Workspaces(database).ensure(workspace)
    return Terminal(url, token_file, workspace, tmp_path)
