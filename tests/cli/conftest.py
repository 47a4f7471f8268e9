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

from cli.main import main
from embedded.postgres import PostgresServer
from readmodel.database import Database
from readmodel.workspaces import Workspaces
from tests.serving import listening, standing


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
async def server(
    postgres: PostgresServer, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[str, Path]]:
    """The address of a listening API on real servers, with a worker, and its token's file."""
    folder = tmp_path_factory.mktemp("behind-cli")
    async with standing(database, postgres.url, folder) as settings, listening(settings) as url:
        yield url, settings.token_file


@pytest.fixture
async def almanac(server: tuple[str, Path], database: Database, workspace: str, tmp_path: Path) -> Terminal:
    await Workspaces(database).ensure(workspace)
    return Terminal(*server, workspace, tmp_path)
