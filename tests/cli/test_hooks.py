"""Webhooks on the command line, against a real server."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from api.signature import sign
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
    applied = await almanac("apply", almanac.write(FILES))
    assert applied.code == 0, applied.err
    return almanac


async def made(demo: Terminal) -> dict[str, Any]:
    return dict((await demo("hooks", "create", "demo/nightly", "--json")).json)


async def delivered(hook: dict[str, Any], secret: str) -> int:
    timestamp = str(int(time.time()))
    headers = {"Almanac-Timestamp": timestamp, "Almanac-Signature": sign(secret, timestamp, b"{}")}
    async with httpx.AsyncClient(trust_env=False) as sender:
        return (await sender.post(hook["url"], content=b"{}", headers=headers)).status_code


async def test_a_new_webhook_shows_its_secret_once(demo: Terminal) -> None:
    shown = await demo("hooks", "create", "demo/nightly")
    assert shown.code == 0, shown.err
    secret = next(line.split()[-1] for line in shown.out.splitlines() if line.startswith("secret"))
    assert "not shown again" in shown.out
    listed = await demo("hooks", "list", "demo/nightly")
    hook_id = next(line.split()[-1] for line in shown.out.splitlines() if line.startswith("webhook"))
    assert hook_id in listed.out
    assert secret not in listed.out + (await demo("hooks", "list", "demo/nightly", "--json")).out


async def test_it_runs_the_schedule_until_it_is_deleted(demo: Terminal) -> None:
    hook = await made(demo)
    assert await delivered(hook, hook["secret"]) == 202
    assert (await demo("hooks", "delete", "demo/nightly", hook["hook_id"], "--yes")).code == 0
    assert await delivered(hook, hook["secret"]) == 401
    assert "No webhooks." in (await demo("hooks", "list", "demo/nightly")).out


async def test_a_rotated_secret_is_another_and_the_former_is_good_for_a_while(demo: Terminal) -> None:
    hook = await made(demo)
    rotated = await demo("hooks", "rotate", "demo/nightly", hook["hook_id"], "--json")
    assert rotated.json["secret"] != hook["secret"]
    shown = await demo("hooks", "rotate", "demo/nightly", hook["hook_id"])
    assert "The former one is good until" in shown.out
    assert await delivered(hook, rotated.json["secret"]) == 202
    assert await delivered(hook, hook["secret"]) == 401


async def test_a_webhook_that_is_not_there_is_refused(demo: Terminal) -> None:
    for act in (("rotate",), ("delete", "--yes")):
        refused = await demo("hooks", act[0], "demo/nightly", "h0", *act[1:])
        assert (refused.code, "hook.not_found" in refused.err) == (1, True)
