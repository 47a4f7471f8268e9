"""Requests as steps, sent to a real server: what goes out, what comes back, and which answers are a success."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from domain.errors import Invalid
from domain.parameters import Parameter, ParameterType
from domain.pipeline import Group, PipelineDefinition, Retry, Step, check
from domain.run import RunState
from executors import http_step
from executors.pipeline import PipelineExecutor
from executors.protocol import Payload
from tests.executors.test_pipeline import PAYLOAD, Catalogue, Ran
from tests.waiting import eventually


class Server:
    """Answers as the path says, and remembers what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.failures_left = 0
        self.stop = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.seen.append((self.command, self.path, dict(self.headers.items()), body))
                server.answer(self)

            do_GET = do_POST = do_PUT = _answer  # noqa: N815  the names that http.server calls

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name, _, number = request.path.split("?")[0].strip("/").partition("/")
        if name == "hang":
            self.stop.wait(60)
            return
        if name == "break":
            request.connection.close()
            return
        status = int(number) if name == "status" else 200
        if name == "flaky" and self.failures_left:
            self.failures_left -= 1
            status = 503
        request.send_response(status)
        if 300 <= status <= 399:
            request.send_header("Location", f"{self.url}/elsewhere")
        request.end_headers()
        request.wfile.write(b"x" * int(number) if name == "flood" else b'{"rows": 3}')

    def close(self) -> None:
        self.stop.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    yield running
    running.close()


def request(url: str, **more: Any) -> Step:
    of_step = {name: more.pop(name) for name in ("timeout_seconds", "retry", "idempotent") if name in more}
    return Step.model_validate({"id": "ask", "http": {"url": url, **more}, **of_step})


def executor(step: Step, *parameters: Parameter, **more: Any) -> PipelineExecutor:
    definition = PipelineDefinition(name="finance/close", steps=(step,), parameters=parameters, **more)
    check(definition)
    return PipelineExecutor(Catalogue(finance__close=definition))


def giving(**parameters: Any) -> Payload:
    return {**PAYLOAD, "parameters": parameters}


DAY = Parameter(name="day", type=ParameterType.STRING)
COUNT = Parameter(name="count", type=ParameterType.INTEGER)


async def test_a_request_is_sent_and_its_answer_kept(tmp_path: Path, server: Server) -> None:
    ran = Ran(tmp_path)
    assert (await ran.outcome(executor(request(f"{server.url}/rows")))).state is RunState.SUCCEEDED
    ((method, path, headers, body),) = server.seen
    assert (method, path, body) == ("GET", "/rows", b"")
    assert headers["Almanac-Run-Id"] == ran.identity.run_id
    assert headers["Almanac-Execution-Id"] == ran.identity.execution_id
    assert "Idempotency-Key" not in headers
    assert json.loads(ran.output("ask")) == {"rows": 3}
    assert "200" in (ran.folder / "steps/ask/stderr.log").read_text().splitlines()[0]
    result = ran.result("ask")
    assert (result["status"], result["body"]["http_status"], result["identity"]["step_id"]) == ("succeeded", 200, "ask")


async def test_values_are_written_as_their_place_needs_them(tmp_path: Path, server: Server) -> None:
    step = request(
        f"{server.url}/of/${{day}}?n=${{count}}",
        method="POST",
        headers={"X-Day": "${day}"},
        body={"day": "${day}", "price": "$$5", "list": ["${count}", 7], "none": None},
    )
    ran = Ran(tmp_path)
    outcome = await ran.outcome(executor(step, DAY, COUNT), giving(day='a/b?c="d"', count=3))
    assert outcome.state is RunState.SUCCEEDED
    ((_, path, headers, body),) = server.seen
    assert path == "/of/a%2Fb%3Fc%3D%22d%22?n=3"
    assert headers["X-Day"] == 'a/b?c="d"'
    assert json.loads(body) == {"day": 'a/b?c="d"', "price": "$5", "list": ["3", 7], "none": None}
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == f"{ran.identity.execution_id}/ask"


async def test_each_group_sends_its_own(tmp_path: Path, server: Server) -> None:
    groups = tuple(Group(name=name, variables={"CHANNEL": name}) for name in ("linkedin", "mail"))
    ran = Ran(tmp_path)
    step = request(f"{server.url}/${{CHANNEL}}", method="POST", body="to ${CHANNEL}")
    assert (await ran.outcome(executor(step, groups=groups))).state is RunState.SUCCEEDED
    assert [(path, body) for _, path, _, body in server.seen] == [("/linkedin", b"to linkedin"), ("/mail", b"to mail")]
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in server.seen]
    assert keys == [f"{ran.identity.execution_id}/{name}/ask" for name in ("linkedin", "mail")]


@pytest.mark.parametrize(
    ("path", "expected", "failure"),
    [
        ("status/204", [], None),
        ("status/500", [], "got the status 500; expected: 200 to 299."),
        ("status/404", [404, 410], None),
        ("status/200", [404], "got the status 200; expected: 404."),
        ("status/302", [], "got the status 302; expected: 200 to 299."),
    ],
)
async def test_an_answer_is_a_success_where_it_is_expected(
    tmp_path: Path, server: Server, path: str, expected: list[int], failure: str | None
) -> None:
    ran = Ran(tmp_path)
    outcome = await ran.outcome(executor(request(f"{server.url}/{path}", expected_status=expected)))
    assert outcome.message == (f"Step 'ask' {failure}" if failure else None)
    assert len(server.seen) == 1


@pytest.mark.parametrize("path", ["break", "hang"])
async def test_no_answer_is_a_failure_that_says_so(tmp_path: Path, server: Server, path: str) -> None:
    ran = Ran(tmp_path)
    outcome = await ran.outcome(executor(request(f"{server.url}/{path}", timeout_seconds=1)))
    assert (outcome.state, outcome.reason) == (RunState.FAILED, "execution_failed")
    assert outcome.message is not None
    said = "was stopped after 1 s, its own timeout." if path == "hang" else "got no answer: "
    assert outcome.message.startswith(f"Step 'ask' {said}")
    assert ran.result("ask")["body"]["problem"]


async def test_nobody_listens(tmp_path: Path, server: Server) -> None:
    ran = Ran(tmp_path)
    url = server.url
    server.close()
    outcome = await ran.outcome(executor(request(url + "/")))
    assert outcome.state is RunState.FAILED


async def test_of_a_flood_the_beginning_is_kept(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_step, "KEPT_BYTES", 1000)
    ran = Ran(tmp_path)
    assert (await ran.outcome(executor(request(f"{server.url}/flood/300000")))).state is RunState.SUCCEEDED
    assert ran.output("ask") == "x" * 1000
    assert ran.result("ask")["body"]["stdout"] == {"file": "stdout.log", "bytes": 300_000, "bytes_left_out": 299_000}


async def test_only_what_may_be_sent_twice_is_tried_again(tmp_path: Path, server: Server) -> None:
    server.failures_left = 2
    ran = Ran(tmp_path)
    step = request(f"{server.url}/flaky", idempotent=True, retry=Retry(attempts=3, pause_seconds=0))
    assert (await ran.outcome(executor(step))).state is RunState.SUCCEEDED
    assert len(server.seen) == 3
    assert ran.result("ask")["body"]["http_status"] == 503


async def test_a_cancelled_request_is_broken_off_and_told(tmp_path: Path, server: Server) -> None:
    ran = Ran(tmp_path)
    going = asyncio.create_task(ran.outcome(executor(request(f"{server.url}/hang"))))

    async def arrived() -> bool:
        return bool(server.seen)

    await eventually(arrived, what="the request")
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert ran.result("ask")["status"] == "stopped"


@pytest.mark.parametrize(
    ("step", "code", "field"),
    [
        ({"http": {"url": "http://a/${nobody}"}}, "placeholder_unknown", "steps.0.http.url"),
        ({"http": {"url": "http://a/", "body": {"x": ["${nobody}"]}}}, "placeholder_unknown", "steps.0.http.body"),
        ({"http": {"url": "http://a/", "headers": {"X": "5$"}}}, "placeholder_unknown", "steps.0.http.headers"),
        ({"http": {"url": "http://a/"}, "command": ["true"]}, "step_kind", "steps.0"),
        ({}, "step_kind", "steps.0"),
    ],
)
def test_a_step_that_could_never_run_is_refused(step: dict[str, Any], code: str, field: str) -> None:
    definition = PipelineDefinition.model_validate({"name": "a", "steps": [{"id": "ask", **step}]})
    with pytest.raises(Invalid) as refused:
        check(definition)
    assert (refused.value.code, refused.value.field) == (f"pipeline.validation.{code}", field)


async def test_a_value_can_not_begin_another_header(tmp_path: Path, server: Server) -> None:
    ran = Ran(tmp_path)
    step = request(f"{server.url}/", headers={"X-Day": "${day}"})
    outcome = await ran.outcome(executor(step, DAY), giving(day="a\r\nX-Admin: yes"))
    assert outcome.state is RunState.FAILED
    assert server.seen == []
