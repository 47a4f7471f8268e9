"""Temporal and PostgreSQL as real children: ready when they say so, and nothing lost when they are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg
import psutil
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from domain.errors import Conflict, Unavailable
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from tests.embedded.waiting import ended, eventually

pytestmark = pytest.mark.stack


Server = TypeVar("Server", TemporalServer, PostgresServer)


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[Server]:
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def kill(server: TemporalServer | PostgresServer) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert await server.wait() == -signal.SIGKILL


def temporal(data_dir: Path) -> TemporalServer:
    return TemporalServer(data_dir, port=free_port(), ui_port=None)


async def start_workflow(server: TemporalServer, workflow_id: str) -> None:
    client = await Client.connect(server.address, namespace=server.namespace)
    schedule = SearchAttributeKey.for_keyword("AlmanacSchedule")
    await client.start_workflow(
        "nobody-polls-for-this",
        id=workflow_id,
        task_queue="unattended",
        search_attributes=TypedSearchAttributes([SearchAttributePair(schedule, "finance/daily")]),
    )


async def workflow_status(server: TemporalServer, workflow_id: str) -> WorkflowExecutionStatus | None:
    client = await Client.connect(server.address, namespace=server.namespace)
    return (await client.get_workflow_handle(workflow_id).describe()).status


async def test_temporal_is_ready_with_its_search_attributes(tmp_path: Path) -> None:
    async with running(temporal(tmp_path)) as server:
        await start_workflow(server, "filtered")
        client = await Client.connect(server.address, namespace=server.namespace)

        async def listed() -> bool:
            return bool((await client.count_workflows("AlmanacSchedule = 'finance/daily'")).count)

        await eventually(listed)


async def test_temporal_keeps_its_workflows_over_a_stop_and_over_kill_9(tmp_path: Path) -> None:
    async with running(temporal(tmp_path)) as server:
        await start_workflow(server, "before-the-stop")
        await server.stop()
        await server.start()
        await start_workflow(server, "before-the-kill")
        await kill(server)
        await server.start()
        assert await workflow_status(server, "before-the-stop") == WorkflowExecutionStatus.RUNNING
        assert await workflow_status(server, "before-the-kill") == WorkflowExecutionStatus.RUNNING


async def test_temporal_takes_dynamic_configuration_and_refuses_nonsense(tmp_path: Path) -> None:
    server = TemporalServer(tmp_path, port=free_port(), ui_port=None, dynamic_config={"limit.maxIDLength": "20"})
    async with running(server):
        with pytest.raises(Exception, match="exceeds maximum allowed length"):
            await start_workflow(server, "x" * 21)
    server = TemporalServer(tmp_path, port=free_port(), ui_port=None, dynamic_config={"limit.maxIDLength": "{"})
    with pytest.raises(Unavailable) as refusal:
        await server.start()
    assert refusal.value.code == "embedded.start_failed"
    assert "limit.maxIDLength" in refusal.value.message


async def test_temporal_is_not_led_astray_by_a_users_own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "home" / ".config" / "temporalio"
    settings.mkdir(parents=True)
    for name in ("temporal.yaml", "temporal.toml"):
        (settings / name).write_text("]not a settings file[")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(settings.parent))
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(settings / "temporal.toml"))
    async with running(temporal(tmp_path)) as server:
        await start_workflow(server, "undisturbed")


async def test_temporal_listens_on_loopback_only_and_its_data_is_its_owners(tmp_path: Path) -> None:
    async with running(TemporalServer(tmp_path, port=free_port(), ui_port=free_port())) as server:
        listening = [c for c in psutil.Process(server.pid).net_connections() if c.status == psutil.CONN_LISTEN]
        assert listening
        assert {c.laddr[0] for c in listening} == {"127.0.0.1"}
        assert stat.S_IMODE((tmp_path / "temporal.db").stat().st_mode) == 0o600
    assert server.pid is not None
    assert ended(server.pid)


async def note(server: PostgresServer, what: str) -> None:
    engine = create_async_engine(server.url)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE IF NOT EXISTS notes (what text)"))
        await connection.execute(text("INSERT INTO notes VALUES (:what)"), {"what": what})
    await engine.dispose()


async def notes(server: PostgresServer) -> list[str]:
    connection = await asyncpg.connect(server.plain_url)
    try:
        return [row["what"] for row in await connection.fetch("SELECT what FROM notes ORDER BY what")]
    finally:
        await connection.close()


async def test_postgres_keeps_its_rows_over_a_stop_and_over_kill_9(tmp_path: Path) -> None:
    async with running(PostgresServer(tmp_path)) as server:
        await note(server, "before the stop")
        await server.stop()
        await server.start()
        await note(server, "before the kill")
        await kill(server)
        await server.start()
        assert await notes(server) == ["before the kill", "before the stop"]


@pytest.mark.parametrize("path", ["long" * 30, "a/very" * 30, "with,comma", "with:colon", "mit Übersicht", 'quo"te'])
async def test_postgres_works_under_a_path_that_can_not_be_a_sockets(tmp_path: Path, path: str) -> None:
    (tmp_path / path).mkdir(parents=True)
    async with running(PostgresServer(tmp_path / path)) as server:
        assert not server.socket_folder.is_relative_to(tmp_path)
        assert stat.S_IMODE(server.socket_folder.stat().st_mode) == 0o700
        await note(server, "far away")
        assert await notes(server) == ["far away"]
    assert not server.socket_folder.exists()


async def test_postgres_works_under_a_path_with_spaces(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    data.mkdir()
    async with running(PostgresServer(data)) as server:
        await note(server, "near")
        assert await notes(server) == ["near"]


async def test_postgres_works_below_folders_closed_to_others_and_leaves_them_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "data").mkdir(mode=0o700)
    async with running(PostgresServer(closed / "data")) as server:
        await note(server, "behind closed doors")
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (closed, closed / "data")} == {0o700}


async def test_postgres_refuses_a_socket_folder_of_somebody_else(tmp_path: Path) -> None:
    data = tmp_path / ("long" * 30)
    data.mkdir()
    server = PostgresServer(data)
    server.socket_folder.symlink_to(tmp_path)
    try:
        with pytest.raises(Conflict) as refusal:
            await server.start()
    finally:
        server.socket_folder.unlink()
    assert refusal.value.code == "embedded.socket_folder"


async def test_postgres_refuses_data_of_another_major_version(tmp_path: Path) -> None:
    async with running(PostgresServer(tmp_path)) as server:
        pass
    (tmp_path / "postgres" / "PG_VERSION").write_text("19\n")
    with pytest.raises(Conflict) as refusal:
        await server.start()
    assert refusal.value.code == "embedded.postgres_version"
    assert "PostgreSQL 19" in refusal.value.message


async def test_postgres_makes_its_data_anew_after_a_first_start_that_broke_off(tmp_path: Path) -> None:
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "half").write_text("made")
    async with running(PostgresServer(tmp_path)) as server:
        await note(server, "whole")
    assert not (tmp_path / "postgres.new").exists()


async def test_postgres_ends_what_still_works_on_its_data(tmp_path: Path) -> None:
    async with running(PostgresServer(tmp_path)) as left:
        await note(left, "from before")
        async with running(PostgresServer(tmp_path)) as server:
            assert left.pid is not None
            assert ended(left.pid)
            assert await notes(server) == ["from before"]


OWNER = """
import asyncio, sys
from pathlib import Path
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer

async def main():
    data = Path(sys.argv[1])
    postgres, temporal = PostgresServer(data), TemporalServer(data, port=int(sys.argv[2]), ui_port=None)
    await postgres.start()
    await temporal.start()
    print(postgres.pid, temporal.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's end")
async def test_a_killed_owner_leaves_no_servers(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", OWNER, str(tmp_path), str(free_port()))
    owner = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pids = [int(word) for word in (await owner.stdout.readline()).split()]
    assert len(pids) == 2
    assert not any(ended(pid) for pid in pids)
    owner.kill()
    await owner.wait()
    for pid in pids:
        await eventually(partial(ended, pid))
