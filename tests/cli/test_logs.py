"""What the steps of a run printed, on the command line, against a real server."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from cli.logs import printable
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.stack

FILES = """\
kind: schedule
name: demo/nightly
cron: 30 2 * * *
timezone: America/New_York
payload: {pipeline: demo/printing, version: current}
---
kind: pipeline
name: demo/printing
steps:
  - {id: extract, command: [sh, -c, "echo 214 rows; echo careful >&2; printf 'no end'"]}
  - {id: load, needs: [extract], command: [sh, -c, "echo loaded; cat again || { echo y > again; false; }"],
     idempotent: true, retry: {attempts: 2, pause_seconds: 0}}
"""

LIVE = """\
kind: schedule
name: demo/live
cron: 30 2 * * *
timezone: America/New_York
payload: {pipeline: demo/live, version: current}
---
kind: pipeline
name: demo/live
steps:
  - {id: slow, command: [sh, -c, "echo one; until [ -e go ]; do sleep 0.05; done; echo two"]}
"""

FLOOD = """\
kind: schedule
name: demo/flood
cron: 30 2 * * *
timezone: America/New_York
payload: {pipeline: demo/flood, version: current}
---
kind: pipeline
name: demo/flood
steps:
  - {id: flood, command: [sh, -c, "echo first; yes $(printf %0999d 0) | head -c 10000000; echo last"]}
"""


async def ran(almanac: Terminal, files: str, name: str) -> str:
    applied = await almanac("apply", almanac.write(files))
    assert applied.code == 0, applied.err
    return str((await almanac("run-now", name, "--wait", "--json")).json["run_id"])


@pytest.fixture
async def run_id(almanac: Terminal) -> str:
    return await ran(almanac, FILES, "demo/nightly")


async def test_all_steps_are_shown_in_order_each_line_with_its_step(almanac: Terminal, run_id: str) -> None:
    shown = await almanac("logs", run_id)
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert [line for line in lines if line.startswith("extract")] == [
        "extract ! careful",
        "extract │ 214 rows",
        "extract │ no end",
    ]
    assert "load    │ loaded" in lines
    assert lines.index("load    │ loaded") < lines.index("load#2  │ y")
    assert f"{run_id} succeeded" in shown.err


async def test_one_step_is_shown_as_it_printed(almanac: Terminal, run_id: str) -> None:
    assert (await almanac("logs", run_id, "--step", "extract", "--stderr")).out == "careful\n"
    refused = await almanac("logs", run_id, "--step", "transform")
    assert (refused.code, refused.out) == (1, "")
    assert "run.step_not_found" in refused.err


async def test_the_last_lines_of_each_stream(almanac: Terminal, run_id: str) -> None:
    shown = await almanac("logs", run_id, "--tail", "1")
    assert "extract │ no end" in shown.out.splitlines()
    assert "214 rows" not in shown.out
    assert (await almanac("logs", run_id, "--tail", "0")).out == ""


async def test_lines_as_json(almanac: Terminal, run_id: str) -> None:
    shown = await almanac("logs", run_id, "--step", "extract", "--json")
    assert [json.loads(line) for line in shown.out.splitlines()] == [
        {"step": "extract", "attempt": 1, "stream": "stderr", "line": "careful"},
        {"step": "extract", "attempt": 1, "stream": "stdout", "line": "214 rows"},
        {"step": "extract", "attempt": 1, "stream": "stdout", "line": "no end"},
    ]


async def test_what_is_left_out_of_a_flood_is_told_where_it_was(almanac: Terminal) -> None:
    run_id = await ran(almanac, FLOOD, "demo/flood")
    lines = (await almanac("logs", run_id, "--step", "flood")).out.splitlines()
    assert (lines[0], lines[-1]) == ("first", "last")
    assert sum(line.endswith("bytes left out]") for line in lines) == 1
    tail = await almanac("logs", run_id, "--step", "flood", "--tail", "2")
    assert tail.out == f"{'0' * 999}\nlast\n"


async def test_a_run_is_followed_from_its_first_line_to_its_end(almanac: Terminal) -> None:
    assert (await almanac("apply", almanac.write(LIVE))).code == 0
    run_id = (await almanac("run-now", "demo/live", "--json")).json["run_id"]
    server = ("--url", almanac.url, "--token-file", str(almanac.token_file), "--workspace", almanac.workspace)
    follower = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli", "logs", run_id, "--follow", *server), stdout=asyncio.subprocess.PIPE
    )
    assert follower.stdout is not None
    assert await follower.stdout.readline() == "slow │ one\n".encode()
    work = almanac.token_file.parent / "storage" / almanac.workspace / "demo/live/runs/iteration-1-sched/work"
    (work / "go").touch()
    rest, _ = await follower.communicate()
    assert (follower.returncode, rest.decode()) == (0, "slow │ two\n")


async def test_a_run_that_is_not_there_is_refused(almanac: Terminal) -> None:
    refused = await almanac("logs", "no-such-run")
    assert (refused.code, "run.not_found" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("line", "plain", "coloured"),
    [
        ("plain\ttext", "plain\ttext", "plain\ttext"),
        ("10%\r20%\r", "20%", "20%"),
        ("\x1b[31mred\x1b[0m", "red", "\x1b[31mred\x1b[0m\x1b[0m"),
        ("\x1b]0;title\x07\x1b[2Jgone", "]0;title[2Jgone", "]0;title[2Jgone"),
    ],
)
def test_no_line_moves_the_cursor(line: str, plain: str, coloured: str) -> None:
    assert printable(line, colours=False) == plain
    assert printable(line, colours=True) == coloured
