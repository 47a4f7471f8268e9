"""What runs left, on the command line, against a real server."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.cli.conftest import Terminal

pytestmark = pytest.mark.stack

FILES = """\
kind: schedule
name: demo/nightly
cron: 30 2 * * *
timezone: America/New_York
payload: {pipeline: demo/hello, version: current}
---
kind: pipeline
name: demo/hello
steps:
  - {id: greet, command: [sh, -c, "printf '\\\\377bytes' > raw"]}
"""


@pytest.fixture
async def run_id(almanac: Terminal) -> str:
    applied = await almanac("apply", almanac.write(FILES))
    assert applied.code == 0, applied.err
    ran = await almanac("run-now", "demo/nightly", "--wait", "--json")
    assert ran.code == 0, ran.err
    return str(ran.json["run_id"])


async def test_files_are_listed(almanac: Terminal, run_id: str) -> None:
    listed = await almanac("files", run_id)
    assert listed.code == 0, listed.err
    assert "work/raw" in listed.out
    assert "steps/greet/result-1.json" in listed.out
    assert {item["path"] for item in (await almanac("files", run_id, "--json")).json["items"]} >= {"work/raw"}


async def test_a_file_is_written_to_stdout_as_it_is(almanac: Terminal, run_id: str) -> None:
    server = ("--url", almanac.url, "--token-file", str(almanac.token_file), "--workspace", almanac.workspace)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli", "files", run_id, "work/raw", *server), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await program.communicate()
    assert (program.returncode, out) == (0, b"\xffbytes")


async def test_a_file_that_is_not_there_is_refused(almanac: Terminal, run_id: str) -> None:
    refused = await almanac("files", run_id, "../x")
    assert refused.code == 1
    assert "run.file_not_found" in refused.err


async def test_evidence_is_shown_in_order(almanac: Terminal, run_id: str) -> None:
    shown = await almanac("evidence", run_id)
    assert shown.code == 0, shown.err
    assert shown.out.index("identity-1.json") < shown.out.index("result-1.json")
    assert "Set apart" not in shown.out


async def test_the_runs_of_a_pipeline_are_listed_with_the_latest(almanac: Terminal, run_id: str) -> None:
    listed = await almanac("folders", "demo/hello")
    assert listed.code == 0, listed.err
    assert f"latest: {run_id} in iteration-1-sched" in listed.out
    assert "current" not in listed.out.splitlines()[0]


async def test_a_run_is_shown_from_end_to_end(almanac: Terminal, run_id: str) -> None:
    shown = await almanac("evidence", run_id, "--chain")
    assert shown.code == 0, shown.err
    lines = {line.split("  ")[0]: line for line in shown.out.splitlines()}
    assert run_id in lines["run"]
    assert "demo/nightly" in lines["schedule"]
    assert "run_now" in lines["asked for"]
    assert "iteration-1-sched" in lines["folder"]
    assert "steps/greet/stderr.log" in shown.out
    assert "greet  succeeded" in lines["steps"]
    assert lines["cost"].split() == ["cost", "-"]
    assert lines["reviews"].split() == ["reviews", "-"]
    assert (await almanac("evidence", run_id, "--chain", "--json")).json["run"]["run_id"] == run_id
