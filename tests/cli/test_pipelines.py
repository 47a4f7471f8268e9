"""Pipelines, their versions and the workspace's posture on the command line, against a real server."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Terminal

pytestmark = pytest.mark.stack

FILES = """\
kind: pipeline
name: demo/hello
steps:
  - {id: greet, command: [sh, -c, "echo '{\\"word\\": \\"%s\\"}' > $ALMANAC_RESULT_FILE"]}
---
kind: schedule
name: demo/nightly
cron: 30 2 * * *
timezone: America/New_York
payload: {pipeline: demo/hello, version: current}
"""


@pytest.fixture
async def demo(almanac: Terminal) -> Terminal:
    """Two versions of one pipeline, and a schedule that runs it."""
    for word in ("one", "two"):
        applied = await almanac("apply", almanac.write(FILES % word))
        assert applied.code == 0, applied.err
    return almanac


async def test_the_pointer_is_moved_and_what_a_run_returns_is_shown(demo: Terminal) -> None:
    listed = await demo("pipelines", "list")
    assert "version 2" in listed.out
    pointed = await demo("pipelines", "point", "demo/hello", "1")
    assert (pointed.code, pointed.out.strip()) == (0, "demo/hello runs version 1 now.")
    rows = (await demo("pipelines", "versions", "demo/hello", "--json")).json
    assert [(row["version"], row["is_current"]) for row in rows] == [(2, False), (1, True)]
    ran = await demo("run", "demo/hello", "--wait", "--json")
    assert (await demo("result", ran.json["run_id"], "--json")).json["result"] == {"word": "one"}
    assert '"word": "one"' in (await demo("result", ran.json["run_id"])).out


async def test_a_draft_is_current_only_in_development(demo: Terminal) -> None:
    refused = await demo("pipelines", "point", "demo/hello", "draft")
    assert refused.code == 1
    assert "pipeline.draft_not_allowed" in refused.err
    developing = await demo("workspace", "--posture", "development")
    assert "development" in developing.out
    assert (await demo("pipelines", "point", "demo/hello", "draft")).out.strip() == "demo/hello runs draft now."
    left = await demo("workspace", "--posture", "production")
    assert (left.code, "demo/hello" in left.err) == (1, True)
    assert "development" in (await demo("workspace")).out


async def test_who_discards_a_pipeline_is_told_what_runs_it(demo: Terminal) -> None:
    discarded = await demo("pipelines", "discard", "demo/hello", "--yes")
    assert discarded.code == 0, discarded.err
    assert "demo/nightly" in discarded.err
    assert (await demo("pipelines", "list")).out.strip() == "No pipelines."


async def test_a_version_is_a_number_or_the_draft(demo: Terminal) -> None:
    wrong = await demo("pipelines", "point", "demo/hello", "latest")
    assert (wrong.code, "'latest' is neither" in wrong.err) == (2, True)
