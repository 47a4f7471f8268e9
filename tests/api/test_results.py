"""The small result of a run over REST: what the last step says, for a while, and never a secret or a flood."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import update

from readmodel.database import Database
from readmodel.tables import results
from tests.api.desk import Desk

pytestmark = pytest.mark.stack

SAY = 'echo "$0" > "$ALMANAC_RESULT_FILE"'


async def ended(desk: Desk, *steps: dict[str, Any], given: dict[str, Any] | None = None, **more: Any) -> Any:
    await desk.put("/pipelines/p", {"name": "p", "steps": list(steps), **more})
    released = await desk.post("/pipelines/p/release")
    assert released.status_code == 200, released.text
    asked = await desk.post("/pipelines/p/runs", {"parameters": given or {}})
    assert asked.status_code == 202, asked.text
    return await desk.ended(asked.json()["run_id"])


def step(name: str, script: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "command": ["sh", "-c", script, *arguments], **more}


async def result(desk: Desk, run: dict[str, Any]) -> Any:
    return await desk.get(f"/runs/{run['run_id']}/result")


@pytest.mark.parametrize(
    ("said", "read"),
    [('{"rows": 3, "day": "ü"}', {"rows": 3, "day": "ü"}), ("three rows", "three rows"), ("NaN", "NaN"), ("7", 7)],
)
async def test_the_last_step_s_is_the_run_s(desk: Desk, said: str, read: Any) -> None:
    run = await ended(desk, step("z", SAY, "not this"), step("a", SAY, said, needs=["z"]))
    answer = await result(desk, run)
    assert (answer.status_code, answer.json()["result"]) == (200, read)


@pytest.mark.parametrize("script", ["true", ": > $ALMANAC_RESULT_FILE", "mkdir $ALMANAC_RESULT_FILE"])
async def test_a_run_may_have_none(desk: Desk, script: str) -> None:
    run = await ended(desk, step("only", script))
    assert run["state"] == "succeeded"
    answer = await result(desk, run)
    assert (answer.status_code, answer.json()["code"]) == (404, "run.no_result")


async def test_a_failed_run_has_none(desk: Desk) -> None:
    run = await ended(desk, step("only", f"{SAY}; exit 1", "half"))
    assert run["state"] == "failed"
    assert (await result(desk, run)).status_code == 404


async def test_a_flood_is_no_small_result_and_the_run_says_so(desk: Desk) -> None:
    run = await ended(desk, step("only", "head -c 70000 /dev/zero | tr '\\0' x > $ALMANAC_RESULT_FILE"))
    assert (run["state"], run["message"]) == (
        "succeeded",
        "The result of step 'only' has more than 65536 bytes and is not kept.",
    )
    assert (await result(desk, run)).status_code == 404


@pytest.mark.parametrize(
    "script",
    [
        "mkfifo $ALMANAC_RESULT_FILE",
        "ln -s /etc/passwd $ALMANAC_RESULT_FILE",
        "ln -s $ALMANAC_RESULT_FILE $ALMANAC_RESULT_FILE",
        "printf '\\377\\000\\200' > $ALMANAC_RESULT_FILE",
        "yes '[' | head -c 60000 > $ALMANAC_RESULT_FILE",
        "{ printf '[%.0s' $(seq 500); printf ']%.0s' $(seq 500); } > $ALMANAC_RESULT_FILE",
        "printf 1%.0s $(seq 9000) > $ALMANAC_RESULT_FILE",
        """printf '"\\\\ud800"' > $ALMANAC_RESULT_FILE""",
    ],
    ids=["fifo", "link", "loop", "no text", "open brackets", "deep", "long number", "half a pair"],
)
async def test_whatever_is_there_the_run_ends_and_nothing_else_is_read(desk: Desk, script: str) -> None:
    run = await ended(desk, step("only", script))
    assert run["state"] == "succeeded", run
    answer = await result(desk, run)
    assert answer.status_code in (200, 404)
    assert "root:" not in answer.text


async def test_it_never_has_a_secret(desk: Desk) -> None:
    secret = {"name": "token", "type": "STRING", "secret": True}
    script = 'echo "{\\"token\\": \\"$ALMANAC_PARAMETER_TOKEN\\"}" > $ALMANAC_RESULT_FILE'
    run = await ended(desk, step("only", script), given={"token": "s3cr3t-word"}, parameters=[secret])
    assert (await result(desk, run)).json()["result"] == {"token": "********"}


async def test_its_time_is_over(desk: Desk, database: Database) -> None:
    run = await ended(desk, step("only", SAY, "word"), result_ttl_seconds=60)
    kept = (await result(desk, run)).json()
    assert kept["expires_at"] > run["ended_at"]
    async with database.transaction() as connection:
        over = datetime.fromisoformat(run["recorded_at"])
        await connection.execute(update(results).where(results.c.run_id == run["run_id"]).values(expires_at=over))
    answer = await result(desk, run)
    assert (answer.status_code, answer.json()["code"]) == (404, "run.no_result")


@pytest.mark.parametrize("seconds", [-1, 3601, "soon"])
async def test_it_is_kept_for_an_hour_at_most(desk: Desk, seconds: Any) -> None:
    body = {"name": "p", "steps": [step("only", "true")], "result_ttl_seconds": seconds}
    refused = await desk.put("/pipelines/p", body)
    assert (refused.status_code, refused.json()["field"]) == (400, "result_ttl_seconds")
