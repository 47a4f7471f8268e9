"""One request of a run, and what came of it.

    <run folder>/steps/<step>/stdout.log     the answer's body, as much of it as is kept
    <run folder>/steps/<step>/stderr.log     the answer's status line and headers
    <run folder>/steps/<step>/result-1.json  how it ended

A request is sent once. Redirections are not followed: an answer that redirects is an answer. Who receives it is told
whose it is, and a request that changes something carries a key by which the same one can be known again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from string import Template

import httpx
from pydantic import JsonValue

from domain import placeholders
from domain.http_request import HttpRequest
from domain.pipeline import Step
from evidence import documents
from executors import step_logs
from executors.masking import Masking, masked
from executors.pipeline_secrets import Opened
from executors.protocol import Execution

KEPT_BYTES = 4 << 20
"""Of an answer's body."""

CONNECT_SECONDS = 10.0


@dataclass
class _Answer:
    stdout: Path
    stderr: Path
    hidden: tuple[str, ...]
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    http_status: int | None = None
    size: int = 0
    kept: int = 0
    left_out: int = 0
    problem: str | None = None
    stopped: str | None = None


async def run(step: Step, request: HttpRequest, execution: Execution, parameters: Opened) -> str | None:
    """Sends it; None when the answer is one of those expected, else what went wrong, in words that follow the step's
    name. Raises OSError."""
    stdout, stderr, _ = await asyncio.to_thread(step_logs.begin, execution, step.id)
    answer = _Answer(stdout, stderr, parameters.hidden)
    values = {**parameters.texts, **step.environment}
    try:
        async with asyncio.timeout(step.timeout_seconds):
            await _exchange(request, _headers(request, values, execution, step), values, answer)
    except TimeoutError:
        answer.stopped, answer.problem = "timeout", f"was stopped after {step.timeout_seconds} s, its own timeout."
    except asyncio.CancelledError:
        answer.stopped = "cancelled"
        with contextlib.suppress(OSError):
            await asyncio.to_thread(_write_result, step, execution, answer)
        raise
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        answer.problem = masked(f"got no answer: {str(error) or type(error).__name__}.", parameters.hidden)
    else:
        answer.problem = _unexpected(request, answer)
    await asyncio.to_thread(_write_result, step, execution, answer)
    return answer.problem


def _headers(
    request: HttpRequest, values: Mapping[str, str], execution: Execution, step: Step
) -> list[tuple[str, str]]:
    """Raises httpx.InvalidURL for a value that would end its header and begin another."""
    identity = execution.identity
    parts = (identity.execution_id, identity.group, step.id)
    told = {
        "Almanac-Run-Id": identity.run_id,
        "Almanac-Execution-Id": identity.execution_id,
        "Idempotency-Key": "/".join(part for part in parts if part),
    }
    if isinstance(request.body, dict | list):
        told["Content-Type"] = "application/json"
    if request.method in ("GET", "HEAD"):
        del told["Idempotency-Key"]
    given = {name: Template(value).substitute(values) for name, value in request.headers.items()}
    if any(character in value for value in given.values() for character in "\r\n\0"):
        raise httpx.InvalidURL("a header's value has a line break in it")
    named = {name.lower() for name in given}
    return [*given.items(), *((name, value) for name, value in told.items() if name.lower() not in named)]


async def _exchange(
    request: HttpRequest, headers: list[tuple[str, str]], values: Mapping[str, str], answer: _Answer
) -> None:
    quoted = {name: urllib.parse.quote(value, safe="") for name, value in values.items()}
    timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
    url = Template(request.url).substitute(quoted)
    async with (
        httpx.AsyncClient(timeout=timeout, follow_redirects=False) as client,
        client.stream(request.method, url, headers=headers, content=_content(request.body, values)) as response,
    ):
        answer.http_status = response.status_code
        masking = Masking(secret.encode() for secret in answer.hidden)
        await asyncio.to_thread(_write_head, answer, response)
        with answer.stdout.open("ab") as file:
            async for chunk in response.aiter_bytes():
                answer.size += len(chunk)
                _keep(answer, file.write, masking.feed(chunk))
            _keep(answer, file.write, masking.finish())


def _content(body: JsonValue, values: Mapping[str, str]) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, str):
        return Template(body).substitute(values).encode()
    return json.dumps(placeholders.filled(body, values), ensure_ascii=False).encode()


def _write_head(answer: _Answer, response: httpx.Response) -> None:
    lines = [f"{response.http_version} {response.status_code} {response.reason_phrase}"]
    lines += [f"{name}: {value}" for name, value in response.headers.multi_items()]
    answer.stderr.write_text(masked("\n".join(lines), answer.hidden) + "\n", encoding="utf-8")


def _keep(answer: _Answer, write: Callable[[bytes], int], masked: bytes) -> None:
    """The beginning of the body; a flood fills no disk."""
    kept = masked[: KEPT_BYTES - answer.kept]
    write(kept)
    answer.kept += len(kept)
    answer.left_out += len(masked) - len(kept)


def _unexpected(request: HttpRequest, answer: _Answer) -> str | None:
    status = answer.http_status or 0
    if status in request.expected_status or (not request.expected_status and 200 <= status <= 299):
        return None
    wanted = ", ".join(map(str, request.expected_status)) or "200 to 299"
    return f"got the status {status}; expected: {wanted}."


def _write_result(step: Step, execution: Execution, answer: _Answer) -> None:
    ended_at = datetime.now(UTC)
    failed = "stopped" if answer.stopped == "cancelled" else "failed"
    succeeded = answer.problem is None and answer.stopped is None
    body: dict[str, JsonValue] = {
        "status": "succeeded" if succeeded else failed,
        "stopped": answer.stopped,
        "http_status": answer.http_status,
        "problem": answer.problem,
        "duration_seconds": round((ended_at - answer.began_at).total_seconds(), 6),
        "stdout": {"file": answer.stdout.name, "bytes": answer.size, "bytes_left_out": answer.left_out},
    }
    documents.write(
        execution.folder,
        execution.identity,
        "result",
        body,
        step_id=step.id,
        started_at=answer.began_at,
        completed_at=ended_at,
        status=str(body["status"]),
    )
