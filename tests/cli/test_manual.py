"""`almanac run` against a real server."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Terminal, ran

pytestmark = pytest.mark.stack

FILES = """\
kind: pipeline
name: demo/report
parameters:
  - {name: day, type: DATE}
  - {name: count, type: INTEGER, default: 1}
  - {name: code, type: STRING}
steps:
  - {id: only, command: [sh, -c, "test $ALMANAC_PARAMETER_COUNT -lt 9"]}
"""


@pytest.fixture
async def pipeline(almanac: Terminal) -> str:
    applied = await almanac("apply", almanac.write(FILES))
    assert applied.code == 0, applied.err
    return "demo/report"


async def test_a_pipeline_is_run_by_hand_and_its_end_shown(almanac: Terminal, pipeline: str) -> None:
    shown = await almanac("run", pipeline, "--wait")

    assert shown.code == 0, shown.err
    for said in ("pipeline:demo/report", "manual", "succeeded", "iteration-0"):
        assert said in shown.out
    listed = await almanac("runs", "--origin", "manual")
    assert "manual-" in listed.out


async def test_values_and_bindings_reach_it(almanac: Terminal, pipeline: str) -> None:
    given = ("--param", "count:=7", "--param", "code=007", "--bind", "day=TODAY", "--timezone", "Asia/Tokyo")
    shown = await almanac("run", pipeline, *given, "--wait", "--json")

    assert shown.code == 0, shown.err
    resolved = shown.json["prepared"]["resolved_parameters"]
    assert (resolved["count"], resolved["code"]) == (7, "007")
    assert resolved["day"] is not None
    assert shown.json["reference_zone"] == "Asia/Tokyo"


async def test_a_failed_run_fails_the_command_that_waits(almanac: Terminal, pipeline: str) -> None:
    assert (await almanac("run", pipeline, "--param", "count:=9", "--wait")).code == 1


async def test_the_same_key_is_the_same_run(almanac: Terminal, pipeline: str) -> None:
    ids = {(await almanac("run", pipeline, "--key", "k", "--json")).json["run_id"] for _ in range(2)}
    assert len(ids) == 1


async def test_a_value_of_another_type_is_refused(almanac: Terminal, pipeline: str) -> None:
    refused = await almanac("run", pipeline, "--param", "count=7")
    assert refused.code == 1
    assert "schedule.validation.parameters_invalid" in refused.err


@pytest.mark.parametrize("given", [("--param", "count"), ("--param", "count:=seven"), ("--bind", "=TODAY")])
def test_what_is_no_pair_is_said_in_one_line(given: tuple[str, str]) -> None:
    wrong = ran("run", "demo/report", *given, "--url", "http://127.0.0.1:1", "--token-file", "/dev/null")
    assert wrong.code == 2
    assert len(wrong.err.splitlines()) == 1
