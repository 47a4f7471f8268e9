"""Commands against a real server: what they print, and how they end."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from domain.secrets import MASK
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
  - {id: greet, command: [echo, hello]}
"""


@pytest.fixture
async def demo(almanac: Terminal) -> Terminal:
    """A workspace with one pipeline and one schedule."""
    ended = await almanac("apply", almanac.write(FILES))
    assert ended.code == 0, ended.err
    return almanac


async def test_apply_creates_then_changes_nothing_then_changes_what_differs(almanac: Terminal) -> None:
    created = await almanac("apply", almanac.write(FILES))
    assert (created.code, created.err) == (0, "")
    assert created.out.split() == ["created", "pipeline", "demo/hello", "created", "schedule", "demo/nightly"]

    again = await almanac("apply", almanac.write(FILES))
    assert again.out.split() == ["unchanged", "pipeline", "demo/hello", "unchanged", "schedule", "demo/nightly"]

    edited = FILES.replace("30 2", "30 3").replace("hello]", "hi]")
    changed = await almanac("apply", almanac.write(edited), "--json")
    pipeline, schedule = changed.json
    assert (pipeline["result"], list(pipeline["fields"])) == ("changed", ["steps"])
    assert (schedule["result"], schedule["fields"]) == ("changed", {"cron": ["30 2 * * *", "30 3 * * *"]})
    assert (schedule["document"], schedule["line"]) == (1, 1)
    assert (await almanac("show", "demo/nightly", "--json")).json["revision"] == 2


async def test_a_dry_run_says_the_same_and_changes_nothing(almanac: Terminal) -> None:
    dry = await almanac("apply", almanac.write(FILES), "--dry-run", "--json")
    assert [change["result"] for change in dry.json] == ["created", "created"]
    assert (await almanac("list", "--json")).json == []

    await almanac("apply", almanac.write(FILES))
    dry = await almanac("apply", almanac.write(FILES.replace("30 2", "30 3")), "--dry-run")
    assert "would be unchanged pipeline" in dry.out
    assert "cron: 30 2 * * * → 30 3 * * *" in dry.out
    assert (await almanac("show", "demo/nightly", "--json")).json["revision"] == 1


async def test_apply_with_a_mistake_changes_nothing_and_says_where_it_is(almanac: Terminal) -> None:
    file = almanac.write(FILES.replace("America/New_York", "EST"))

    ended = await almanac("apply", file)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"{file}:4 (document 1): ")
    told = json.loads((await almanac("apply", file, "--json")).err)
    assert (told["file"], told["document"], told["line"], told["field"]) == (file, 1, 4, "timezone")
    assert (await almanac("list", "--json")).json == []


async def test_apply_goes_on_after_a_refusal_and_fails_in_the_end(demo: Terminal) -> None:
    bad = FILES.replace("30 2 *", "'*/1 * *").replace("* *\n", "* *'\n").replace("demo/nightly", "demo/hasty")
    (demo.folder / "all.yaml").unlink()
    demo.write(bad, "1.yaml")
    demo.write(FILES.split("---")[0].replace("demo/nightly", "demo/second"), "2.yaml")

    ended = await demo("apply", str(demo.folder))

    assert ended.code == 1
    assert f"{demo.folder}/1.yaml:3 (document 1): schedule 'demo/hasty'" in ended.err
    assert "schedule.validation.interval_too_short" in ended.err
    assert "created   schedule  demo/second" in ended.out


async def test_a_secret_in_a_file_is_saved_once_and_told_never(almanac: Terminal) -> None:
    files = (
        "{kind: pipeline, name: p, parameters: [{name: token, type: STRING, secret: true}], "
        "steps: [{id: a, command: [a]}]}",
        '{kind: schedule, name: s, cron: "0 9 * * *", timezone: UTC, payload: {pipeline: p, version: current}}',
    )
    assert (await almanac("apply", almanac.write("\n---\n".join(files)))).code == 0
    secret = "\n---\n".join(files).replace("version: current", "version: current, parameters: {token: open-sesame}")
    results = [await almanac("apply", almanac.write(secret)) for _ in range(2)]
    results.append(await almanac("apply", almanac.write(secret.replace("open", "shut"))))
    assert [ended.out.count("changed") - ended.out.count("unchanged") for ended in results] == [1, 0, 1]
    told = "".join(ended.out + ended.err for ended in (*results, await almanac("list", "--json")))
    assert MASK in told
    assert "sesame" not in told


async def test_a_list_shows_local_time_beside_utc(demo: Terminal) -> None:
    ended = await demo("list")

    header, row = ended.out.splitlines()
    assert header.split()[:3] == ["name", "condition", "due"]
    assert row.split()[:2] == ["demo/nightly", "active"]
    assert " 02:30 -0" in row or " 03:00 -04:00" in row
    assert "30 2 * * *" in row
    assert "\x1b" not in ended.out


async def test_an_empty_list_says_so(almanac: Terminal) -> None:
    assert (await almanac("list")).out == "No schedules.\n"
    assert (await almanac("runs")).out == "No runs.\n"


async def test_run_now_waits_for_the_end_and_shows_it(demo: Terminal) -> None:
    ended = await demo("run-now", "demo/nightly", "--wait")

    assert ended.code == 0, ended.err
    assert ended.out.index("queued") < ended.out.index("running") < ended.out.index("succeeded")
    (run,) = (await demo("runs", "demo/nightly", "--json")).json
    assert run["state"] == "succeeded"
    assert run["run_id"] in ended.out
    told = await demo("trail", run["run_id"])
    assert [word for word in ("recorded", "starting", "running", "succeeded") if word not in told.out] == []
    assert (await demo("trail", run["run_id"], "--json")).json["run"] == run
    assert run["run_id"] in (await demo("runs")).out
    assert "last run" in (await demo("show", "demo/nightly")).out


async def test_run_now_fails_when_the_run_does_not_succeed(demo: Terminal) -> None:
    await demo("apply", demo.write(FILES.replace("[echo, hello]", "[sh, -c, 'exit 3']")))

    ended = await demo("run-now", "demo/nightly", "--wait", "--json")

    assert (ended.code, ended.json["state"]) == (1, "failed")


async def test_the_same_key_is_the_same_run(demo: Terminal) -> None:
    first = await demo("run-now", "demo/nightly", "--wait", "--key", "k", "--json")
    again = await demo("run-now", "demo/nightly", "--wait", "--key", "k", "--json")

    assert first.json["run_id"] == again.json["run_id"]


async def test_acts_take_a_name_or_an_id(demo: Terminal) -> None:
    schedule_id = (await demo("show", "DEMO/nightly", "--json")).json["schedule_id"]

    for act, named, condition in (("pause", schedule_id, "paused"), ("resume", "demo/nightly", "active")):
        assert (await demo(act, named, "--json")).json["condition"] == condition
    assert (await demo("unblock", schedule_id)).code == 0
    (replanned,) = (await demo("replan", "--json")).json
    assert replanned["before"] == replanned["after"]
    assert (replanned["moved"], replanned["problem"]) == ([], None)
    assert "demo/nightly" in (await demo("replan", "demo/nightly")).out


async def test_delete_asks_for_a_yes(demo: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert (await demo("delete", "demo/nightly")).code == 1
    assert len((await demo("list", "--json")).json) == 1

    assert (await demo("delete", "demo/nightly", "--yes")).code == 0
    assert (await demo("list", "--json")).json == []


async def test_a_refusal_is_one_line_or_one_problem(demo: Terminal) -> None:
    for arguments, code in (
        (("show", "no/such"), "schedule.not_found"),
        (("pause", "saaaaaaaaaaaa"), "schedule.not_found"),
        (("trail", "nope"), "run.not_found"),
        (("preview", "0 9 30 2 *"), "schedule.validation.cron_never"),
        (("preview", "0 9 * * *", "--timezone", "CET"), "schedule.validation.zone_abbreviation"),
    ):
        line = await demo(*arguments)
        assert (line.code, line.out, len(line.err.splitlines())) == (1, "", 1), arguments
        assert line.err.rstrip().endswith(f"({code})")
        problem = await demo(*arguments, "--json")
        assert (problem.code, problem.out, json.loads(problem.err)["code"]) == (1, "", code)


async def test_a_wrong_token_is_a_refusal(demo: Terminal) -> None:
    (demo.folder / "wrong").write_text("some-other-token")

    ended = await Terminal(demo.url, demo.folder / "wrong", demo.workspace, demo.folder)("list")

    assert (ended.code, ended.err.endswith("(auth.token_wrong)\n")) == (1, True)


async def test_an_unknown_workspace_is_a_refusal(demo: Terminal) -> None:
    ended = await Terminal(demo.url, demo.token_file, "nowhere", demo.folder)("list")

    assert (ended.code, ended.err.endswith("(workspace.not_found)\n")) == (1, True)


async def test_a_preview_says_what_the_rule_did(almanac: Terminal) -> None:
    ended = await almanac("preview", "30 2 14 3 *", "-z", "America/New_York", "-n", "3")

    assert ended.code == 0
    assert "America/New_York" in ended.out
    assert ended.out.splitlines()[2].split()[-1] == "gap"
    assert len((await almanac("preview", "0 9 * * *", "--json", "-n", "7")).json["rows"]) == 7


async def test_cancel_ends_what_runs(almanac: Terminal) -> None:
    await almanac("apply", almanac.write(FILES.replace("[echo, hello]", "[sleep, '600']")))
    run = (await almanac("run-now", "demo/nightly", "--json")).json

    ended = await almanac("cancel", run["run_id"], "--wait", "--json")

    assert ended.code == 0, ended.err
    assert (ended.json["state"], ended.json["reason"]) == ("cancelled", "cancelled")
    again = await almanac("cancel", run["run_id"])
    assert (again.code, "run.ended" in again.err) == (1, True)


@pytest.mark.parametrize("run_id", ["", "..", "../schedules", "a/b", "a?b", "ä"])
async def test_what_is_no_id_of_a_run_is_not_found(demo: Terminal, run_id: str) -> None:
    ended = await demo("trail", run_id, "--json")

    assert (ended.code, ended.out) == (1, "")
    assert json.loads(ended.err)["code"] == "run.not_found"


@pytest.mark.parametrize("named", ["..", "a/..", "Ü"])
async def test_a_workspace_is_no_path(almanac: Terminal, named: str) -> None:
    ended = await replace(almanac, workspace=named)("list", "--json")

    assert (ended.code, json.loads(ended.err)["status"]) == (1, 404)
