"""The API while what it needs is down, and after it is back."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import httpx
import pytest
from temporalio.client import Client

from api.app import create
from api.settings import Settings
from api.temporal import ScheduleWorkflows
from domain.errors import Busy, Unavailable
from embedded.ports import free_port
from embedded.postgres import PostgresServer
from embedded.temporal_server import TemporalServer
from readmodel import migrate
from tests.api.desk import definition
from tests.serving import TOKEN, serving
from tests.waiting import eventually

SCHEDULES = "/api/v1/workspaces/default/schedules"


async def test_it_starts_with_nothing_behind_it_and_says_what_is_missing(dark: httpx.AsyncClient) -> None:
    assert (await dark.get("/healthz")).json() == {"status": "alive"}

    ready = await dark.get("/readyz")

    assert (ready.status_code, ready.json()["code"]) == (503, "api.not_ready")
    assert (ready.json()["database"], ready.json()["temporal"]) == ("unavailable", "unavailable")


async def test_without_a_database_every_request_is_told_to_come_again(dark: httpx.AsyncClient) -> None:
    for answer in (await dark.get(SCHEDULES), await dark.post(SCHEDULES, json=definition())):
        assert (answer.status_code, answer.json()["code"]) == (503, "database.unavailable")
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.stack
async def test_it_serves_again_once_all_is_back(tmp_path: Path, token_file: Path) -> None:
    postgres = PostgresServer(tmp_path / "postgres")
    await postgres.start()
    await migrate.upgrade(postgres.url)
    temporal = TemporalServer(tmp_path, port=free_port(), ui_port=free_port(), namespace="almanac")
    settings = Settings(database_url=postgres.url, temporal_address=temporal.address, token_file=token_file)

    async with serving(settings) as http:

        async def ready() -> dict[str, str]:
            answer = (await http.get("/readyz")).json()
            return {part: answer[part] for part in ("database", "temporal")}

        async def all_ready() -> bool:
            return set((await ready()).values()) == {"ready"}

        try:
            assert await ready() == {"database": "ready", "temporal": "unavailable"}
            refused = await http.post(f"{SCHEDULES}/saaaaaaaaaaaa/pause")
            assert (refused.status_code, refused.json()["code"]) == (503, "temporal.unavailable")

            await temporal.start()
            await temporal.wait_ready()
            await eventually(all_ready, what="ready")
            answer = await http.post(f"{SCHEDULES}/saaaaaaaaaaaa/pause")
            assert (answer.status_code, answer.json()["code"]) == (404, "schedule.not_found")

            await postgres.stop()
            assert await ready() == {"database": "unavailable", "temporal": "ready"}
            assert (await http.get(SCHEDULES)).status_code == 503

            await postgres.start()
            await eventually(all_ready, what="ready again")
            assert (await http.get(SCHEDULES)).json() == {"items": [], "next_cursor": None}
        finally:
            await temporal.stop()
            await postgres.stop()


@pytest.mark.stack
async def test_a_change_that_no_worker_takes_is_given_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.temporal.ANSWER_SECONDS", 0.5)
    await client.start_workflow("almanac.nobody", id="schedule/nobody/saaaaaaaaaaaa", task_queue="nobody")

    with pytest.raises(Unavailable) as refused:
        await ScheduleWorkflows(client).act("nobody", "saaaaaaaaaaaa", "pause", "test")

    assert refused.value.code == "temporal.unavailable"


@pytest.mark.stack
async def test_who_waits_too_long_for_others_is_told_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.temporal.ANSWER_SECONDS", 2.0)
    monkeypatch.setattr("api.temporal.TURN_SECONDS", 0.1)
    await client.start_workflow("almanac.nobody", id="schedule/nobody/sbbbbbbbbbbbb", task_queue="nobody")
    workflows = ScheduleWorkflows(client)

    first, second = await asyncio.gather(
        *(workflows.act("nobody", "sbbbbbbbbbbbb", "pause", "test") for _ in range(2)), return_exceptions=True
    )

    assert isinstance(first, Unavailable)
    assert isinstance(second, Busy)
    assert second.code == "schedule.busy"


async def test_what_nobody_foresaw_is_logged_under_an_id_and_tells_nothing(
    token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(database_url="postgresql+asyncpg://127.0.0.1:1/x", token_file=token_file)
    app = create(settings)

    @app.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError("a secret of the inside")

    transport = httpx.ASGITransport(app)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with caplog.at_level(logging.ERROR, "almanac.api"):
        async with httpx.AsyncClient(transport=transport, base_url="http://almanac", headers=headers) as http:
            answer = await http.get("/broken")

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert problem["error_id"] in caplog.text
    assert "a secret of the inside" in caplog.text
