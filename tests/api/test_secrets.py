"""A secret parameter, from the request that gives it to the step that gets it: nothing between keeps it readable."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from domain.secrets import MASK
from embedded.postgres import PostgresServer
from tests.api.desk import Desk, definition

pytestmark = pytest.mark.stack

SECRET = "0p3n-s3s4me-f0r-n0b0dy"  # noqa: S105  it opens nothing
PLAIN = "a-word-that-anyone-may-read"
DECLARED = [{"name": "token", "type": "STRING", "secret": True}, {"name": "word", "type": "STRING"}]
PRINTS = 'test "$ALMANAC_PARAMETER_TOKEN" || exit 3; echo "$ALMANAC_PARAMETER_TOKEN $ALMANAC_PARAMETER_WORD"; exit 1'


def giving(token: Any, word: str = PLAIN) -> dict[str, Any]:
    return {"pipeline": "asking", "version": "current", "parameters": {"token": token, "word": word}}


@pytest.fixture
async def asking(desk: Desk) -> Desk:
    """With a pipeline that prints its secret, to stderr too, and fails."""
    steps = [{"id": "only", "command": ["sh", "-c", f"exec 2>&1; {PRINTS}"]}]
    body = {"name": "asking", "parameters": DECLARED, "steps": steps}
    assert (await desk.put("/pipelines/asking", body)).status_code == 200
    assert (await desk.post("/pipelines/asking/release")).status_code == 200
    return desk


async def everything_in(server: PostgresServer) -> str:
    """All rows of all tables, as text."""
    connection = await asyncpg.connect(server.url.replace("+asyncpg", ""))
    try:
        tables = await connection.fetch("SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r'")
        rows = [await connection.fetch(f"SELECT t::text AS row FROM {table['name']} t") for table in tables]
        return "\n".join(row["row"] for found in rows for row in found)
    finally:
        await connection.close()


def files_with(folder: Path, text: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def test_a_secret_is_nowhere_to_be_read(
    asking: Desk, postgres: PostgresServer, behind_api: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    created = await asking.post("/schedules", definition(payload=giving(SECRET)))
    assert created.status_code == 201, created.text
    schedule_id = created.json()["schedule_id"]
    asked = await asking.post(f"/schedules/{schedule_id}/run-now")
    run = await asking.ended(asked.json()["run_id"])
    assert (run["state"], run["reason"]) == ("failed", "execution_failed")
    assert run["prepared"]["resolved_parameters"] == {"token": MASK, "word": PLAIN}
    printed = await asking.get(f"/runs/{run['run_id']}/files/steps/only/stdout.log")
    assert printed.text == f"{MASK} {PLAIN}\n"
    answers = [created.text, json.dumps(run), (await asking.get(f"/schedules/{schedule_id}")).text]
    answers += [(await asking.get(path)).text for path in ("/schedules", f"/runs/{run['run_id']}/trail")]
    assert SECRET not in "".join([*answers, await everything_in(postgres), caplog.text])
    # Temporal keeps its histories in a file beside the storage.
    assert files_with(behind_api, SECRET) == []

    # A value that is not secret is found in all of those places, by the same search.
    assert PLAIN in answers[0]
    assert PLAIN in await everything_in(postgres)
    kept = files_with(behind_api, PLAIN)
    assert any("/storage/" in file for file in kept)
    assert any("/temporal" in file for file in kept)


async def test_a_manual_run_s_secret_is_as_well_kept(
    asking: Desk, postgres: PostgresServer, behind_api: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = SECRET[::-1]
    started = await asking.post("/pipelines/asking/runs", {"parameters": {"token": secret, "word": PLAIN}})
    assert started.status_code == 202, started.text
    run = await asking.ended(started.json()["run_id"])
    printed = await asking.get(f"/runs/{run['run_id']}/files/steps/only/stdout.log")
    assert printed.text == f"{MASK} {PLAIN}\n"
    assert secret not in "".join([started.text, json.dumps(run), await everything_in(postgres), caplog.text])
    assert files_with(behind_api, secret) == []


async def test_what_was_read_can_be_saved_again_and_keeps_the_secret(asking: Desk) -> None:
    schedule = await asking.created(payload=giving(SECRET))
    path = f"/schedules/{schedule['schedule_id']}"
    read = (await asking.get(path)).json()
    assert read["definition"]["payload"] == giving(MASK)
    same = await asking.put(path, {**read["definition"], "revision": 1})
    assert (same.status_code, same.json()["revision"]) == (200, 1)
    again = await asking.put(path, {**read["definition"], "payload": giving(SECRET), "revision": 1})
    assert again.json()["revision"] == 1
    worded = await asking.put(path, {**read["definition"], "payload": giving(MASK, "other"), "revision": 1})
    assert worded.json()["revision"] == 2
    asked = await asking.post(f"{path}/run-now")
    run = await asking.ended(asked.json()["run_id"])
    printed = await asking.get(f"/runs/{run['run_id']}/files/steps/only/stdout.log")
    assert printed.text == f"{MASK} other\n"


async def test_a_repeated_request_is_the_same_schedule(asking: Desk) -> None:
    body = definition(payload=giving(SECRET))
    answers = [await asking.post("/schedules", body, Idempotency_Key="once") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert len({answer.json()["schedule_id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("value", "code"),
    [(MASK, "secret_unknown"), ({"sealed": "gAAAAA"}, "parameters_invalid"), ("abc", "parameters_invalid")],
)
async def test_a_secret_that_can_not_be_kept_is_refused(asking: Desk, value: Any, code: str) -> None:
    refused = await asking.post("/schedules", definition(payload=giving(value)))
    assert (refused.status_code, refused.json()["code"]) == (400, f"schedule.validation.{code}")
    assert refused.json()["field"] == "payload.parameters.token"


@pytest.mark.parametrize("more", [{"type": "DATE"}, {"type": "STRING", "default": "readable"}])
async def test_a_secret_is_a_text_without_a_default(asking: Desk, more: dict[str, Any]) -> None:
    steps = [{"id": "only", "command": ["true"]}]
    declared = [{"name": "token", "secret": True, **more}]
    refused = await asking.put("/pipelines/asking", {"name": "asking", "parameters": declared, "steps": steps})
    assert (refused.status_code, refused.json()["code"]) == (400, "pipeline.validation.parameter_secret")
