"""Who is let in, and which token files are good enough."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api.token import TokenUnusable, read_token
from embedded.ports import free_port
from tests.serving import TOKEN, token_in
from tests.waiting import eventually

PATHS = ("/api/v1/workspaces/default/schedules", "/api/v1/openapi.json", "/api/v1/preview", "/no/such/path")

SYSTEM_AS_USER = base64.b64encode(b"almanac-scheduler:anything").decode()


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_token_nothing_is_told(dark: httpx.AsyncClient, path: str) -> None:
    answer = await dark.get(path, headers={"Authorization": ""})

    assert (answer.status_code, answer.json()["code"]) == (401, "auth.token_wrong")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.headers["Content-Type"] == "application/problem+json"


async def test_a_missing_header_is_said_to_be_missing(dark: httpx.AsyncClient) -> None:
    request = dark.build_request("GET", PATHS[0])
    del request.headers["Authorization"]

    answer = await dark.send(request)

    assert (answer.status_code, answer.json()["code"]) == (401, "auth.token_missing")
    assert answer.json()["hint"]


@pytest.mark.parametrize("given", ["Bearer almanac-scheduler", "bearer Almanac-Scheduler", "Basic " + SYSTEM_AS_USER])
async def test_nobody_can_act_as_the_system_identity(dark: httpx.AsyncClient, given: str) -> None:
    answer = await dark.get(PATHS[0], headers={"Authorization": given})

    assert (answer.status_code, answer.json()["code"]) == (403, "auth.system_identity")


def test_the_name_of_the_system_identity_is_no_token(tmp_path: Path) -> None:
    file = token_in(tmp_path)
    file.write_text("almanac-scheduler\n")
    with pytest.raises(TokenUnusable, match="no credential"):
        read_token(file)


@pytest.mark.parametrize(
    "given",
    [
        b"Bearer wrong",
        f"Bearer {TOKEN}x".encode(),
        f"Bearer {TOKEN[:-1]}".encode(),
        f"Basic {TOKEN}".encode(),
        TOKEN.encode(),
        b"Bearer",
        f"Bearer {TOKEN} {TOKEN}".encode(),
        b"Bearer \xff\xfe",
    ],
)
async def test_a_wrong_token_is_refused(dark: httpx.AsyncClient, given: bytes) -> None:
    answer = await dark.get("/api/v1/openapi.json", headers=[(b"Authorization", given)])

    assert (answer.status_code, answer.json()["code"]) == (401, "auth.token_wrong")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_right_token_is_let_in(dark: httpx.AsyncClient, scheme: str) -> None:
    answer = await dark.get("/api/v1/openapi.json", headers={"Authorization": f"{scheme} {TOKEN}"})

    assert answer.status_code == 200


async def test_health_is_open_to_all(dark: httpx.AsyncClient) -> None:
    for path, status in (("/healthz", 200), ("/readyz", 503)):
        assert (await dark.get(path, headers={"Authorization": ""})).status_code == status


def test_a_token_is_read_without_its_line_end(tmp_path: Path) -> None:
    assert read_token(_token_file(tmp_path, b"0123456789abcdef\n")) == "0123456789abcdef"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622, 0o677])
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = _token_file(tmp_path, b"0123456789abcdef")
    file.chmod(mode)

    with pytest.raises(TokenUnusable, match="chmod 600"):
        read_token(file)


@pytest.mark.parametrize("content", [b"", b"short", b"two words are no token", b"\xff" * 20, b"0123456789\x00abcdef"])
def test_a_token_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TokenUnusable):
        read_token(_token_file(tmp_path, content))


def test_a_token_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenUnusable, match="can't be read"):
        read_token(tmp_path / "none")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ALMANAC_TOKEN_FILE": "/no/such/file"}, "/no/such/file"),
        ({"ALMANAC_API_PORT": "many"}, "ALMANAC_API_PORT"),
        ({"ALMANAC_DATABASE_URL": None}, "ALMANAC_DATABASE_URL"),
    ],
)
def test_a_start_that_can_not_be_is_refused_in_one_line(changes: dict[str, str | None], said: str) -> None:
    wanted = {"ALMANAC_DATABASE_URL": "postgresql+asyncpg://127.0.0.1:1/x", "ALMANAC_TOKEN_FILE": "x"} | changes
    environment = dict(os.environ) | {name: value for name, value in wanted.items() if value is not None}
    for name in (name for name, value in wanted.items() if value is None):
        environment.pop(name, None)

    ended = subprocess.run(
        [sys.executable, "-m", "api"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert said in ended.stderr


def test_a_port_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, "-m", "api"],
            env=_environment(tmp_path, port),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert ended.returncode == 1
    assert ended.stderr == f"almanac api: 127.0.0.1:{port} can't be listened on: Address already in use\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_when_told_to(tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "api", env=_environment(tmp_path, port), stderr=asyncio.subprocess.DEVNULL
    )

    async def answers() -> bool:
        try:
            async with httpx.AsyncClient() as http:
                return (await http.get(f"http://127.0.0.1:{port}/healthz")).is_success
        except httpx.TransportError:
            return False

    await eventually(answers, what="the API")
    process.send_signal(number)

    assert await process.wait() == 0


def _environment(folder: Path, port: int) -> dict[str, str]:
    return os.environ | {
        "ALMANAC_DATABASE_URL": "postgresql+asyncpg://127.0.0.1:1/x",
        "ALMANAC_TEMPORAL_ADDRESS": "127.0.0.1:1",
        "ALMANAC_TOKEN_FILE": str(token_in(folder)),
        "ALMANAC_API_PORT": str(port),
    }


def _token_file(folder: Path, content: bytes) -> Path:
    file = folder / "token"
    file.touch(0o600)
    file.write_bytes(content)
    return file
