"""The nightly backup, against a real server: a good dump passes, and one that lost something does not."""

from __future__ import annotations

import json
from pathlib import Path

import asyncpg
import pytest

from embedded.postgres import PostgresServer
from readmodel.database import Database
from tests.examples.steps import RunFolder

pytestmark = pytest.mark.stack


@pytest.fixture
def run(postgres: PostgresServer, database: Database) -> RunFolder:
    """A run folder beside the data of a server that has our tables."""
    number = len(list(postgres.socket_folder.parent.glob("storage/*")))
    return RunFolder(postgres.socket_folder.parent / "storage" / f"iteration-{number}-sched")


@pytest.fixture
def dumped(run: RunFolder) -> RunFolder:
    ended = run.step("nightly-backup/dump.py")
    assert ended.returncode == 0, ended.stderr
    return run


async def test_a_dump_holds_every_row_of_every_table(postgres: PostgresServer, run: RunFolder) -> None:
    connection = await asyncpg.connect(postgres.plain_url)
    try:
        # Rows that look like the dump's own syntax.
        await connection.execute('CREATE TABLE IF NOT EXISTS "Odd Name" (line text)')
        await connection.executemany(
            'INSERT INTO "Odd Name" VALUES ($1)', [("\\.",), ("COPY x (y) FROM stdin;",), ("",)]
        )
        rows = await connection.fetchval('SELECT count(*) FROM "Odd Name"')
        dumped, verified = run.step("nightly-backup/dump.py"), run.step("nightly-backup/verify.py")
    finally:
        await connection.execute('DROP TABLE "Odd Name"')
        await connection.close()
    assert (dumped.returncode, verified.returncode) == (0, 0), dumped.stderr + verified.stderr
    backup = json.loads((run.work / "backup.json").read_text())
    assert backup["rows"]['public."Odd Name"'] == rows
    assert {"public.runs", "public.trail", "public.schedules"} <= backup["rows"].keys()


def test_a_dump_that_was_cut_short_fails(dumped: RunFolder) -> None:
    dump = dumped.work / "almanac.dump"
    dump.write_bytes(dump.read_bytes()[: dump.stat().st_size // 2])
    assert dumped.step("nightly-backup/verify.py").returncode == 1
    assert not (dumped.work / "backup.json").exists()


def test_a_dump_that_lacks_a_row_fails_and_says_where(dumped: RunFolder) -> None:
    counts = json.loads((dumped.work / "counts.json").read_text())
    counts["public.runs"] += 1
    (dumped.work / "counts.json").write_text(json.dumps(counts))
    ended = dumped.step("nightly-backup/verify.py")
    assert ended.returncode == 1
    assert f"public.runs: {counts['public.runs'] - 1} of {counts['public.runs']} rows" in ended.stderr


def test_without_a_database_nearby_it_says_what_to_set(tmp_path: Path) -> None:
    ended = RunFolder(tmp_path / "run").step("nightly-backup/dump.py")
    assert (ended.returncode, "set PGHOST" in ended.stderr) == (1, True)
