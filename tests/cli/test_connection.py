"""Where a command finds its server, and what it says when it finds none."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cli.connection import Unconfigured, find
from embedded.folder import DataFolder, Ports
from tests.cli.conftest import ran


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """A data folder as `almanac up` leaves it, in `tmp_path`."""
    folder = DataFolder(tmp_path / ".almanac")
    with folder.held():
        folder.save_ports(Ports(temporal=1, ui=2, api=8400))
    return folder


def test_the_options_win(data: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my-token\n")

    found = find("http://there/", tmp_path / "mine", {"ALMANAC_URL": "http://elsewhere"}, tmp_path)

    assert (found.url, found.token) == ("http://there", "my-token")


def test_the_environment_comes_before_the_data_folder(data: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my-token")
    environment = {"ALMANAC_URL": "http://there", "ALMANAC_TOKEN_FILE": str(tmp_path / "mine")}

    found = find(None, None, environment, tmp_path)

    assert (found.url, found.token) == ("http://there", "my-token")


def test_the_data_folder_is_looked_for_upwards(data: DataFolder, tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    found = find(None, None, {}, below)

    assert (found.url, found.token) == ("http://127.0.0.1:8400", data.token())


def test_a_data_folder_may_be_named(data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = find(None, None, {"ALMANAC_DATA": str(data.root)}, tmp_path_factory.mktemp("elsewhere"))

    assert found.url == "http://127.0.0.1:8400"


def test_the_token_is_not_shown(data: DataFolder, tmp_path: Path) -> None:
    assert data.token() not in repr(find(None, None, {}, tmp_path))


@pytest.mark.parametrize("config", ["", "[]", "{}", '{"api": 1, "more": 2}', "\0"])
def test_a_data_folder_that_is_spoilt_is_said_to_be(data: DataFolder, tmp_path: Path, config: str) -> None:
    (data.root / "config.json").write_text(config)

    with pytest.raises(Unconfigured, match="--url"):
        find(None, None, {}, tmp_path)


def test_without_a_server_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ALMANAC_URL", "ALMANAC_TOKEN_FILE", "ALMANAC_DATA"):
        monkeypatch.delenv(name, raising=False)

    ended = ran("list")

    assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1)
    assert "almanac up" in ended.err


def test_a_server_that_does_not_answer_is_said_to_be_unreachable(tmp_path: Path) -> None:
    ended = ran("list", "--url", "http://127.0.0.1:1", "--token-file", __file__)

    assert (ended.code, ended.out, len(ended.err.splitlines())) == (3, "", 1)
    assert "http://127.0.0.1:1" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [("lst",), ("run-now",), ("list", "--limit", "0"), ("list", "--condition", "tired"), ("apply", "/no/such")],
)
def test_a_wrong_command_line_is_said_in_one_line(arguments: tuple[str, ...]) -> None:
    ended = ran(*arguments)

    assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("list", "--limit", "0"), "cli.usage"),
        (("list", "--url", "http://127.0.0.1:1", "--token-file", "/no/such"), "cli.unconfigured"),
        (("list", "--url", "http://127.0.0.1:1", "--token-file", __file__), "cli.unreachable"),
    ],
)
def test_in_json_every_failure_is_a_line_of_json(arguments: tuple[str, ...], code: str) -> None:
    ended = ran(*arguments, "--json")

    assert ended.out == ""
    assert json.loads(ended.err)["code"] == code


@pytest.mark.parametrize("answer", [b"{}", b"[]", b"1", b"null", b'{"items": 1, "next_cursor": null}', b"<html>", b""])
def test_a_server_of_something_else_is_said_to_be_none(answer: bytes, tmp_path: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "token").write_text("a-token")
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            ended = ran("list", "--url", url, "--token-file", str(tmp_path / "token"))
        finally:
            server.shutdown()
            serving.join()

    assert (ended.code, ended.out, len(ended.err.splitlines())) == (3, "", 1)
    assert "no Almanac" in ended.err
