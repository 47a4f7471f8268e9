"""Speaks REST. What the server refuses comes back as the problem it said, what doesn't answer as Unreachable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from cli.connection import Connection
from domain.values import Value

TIMEOUT_SECONDS = 30.0
PAGE = 200


class Refused(Exception):
    """The server said no, or that something it needs is down: `problem` is what it said."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(problem.get("detail") or problem.get("code"))
        self.problem = dict(problem)

    @property
    def code(self) -> str:
        return str(self.problem["code"])

    @property
    def is_outage(self) -> bool:
        return bool(self.problem["status"] == httpx.codes.SERVICE_UNAVAILABLE)


class Unreachable(Exception):
    """No server answered there."""


class Items(Value):
    """A page of a list, as it comes."""

    items: list[Any]
    next_cursor: str | None


class Client:
    """One workspace of one server. Every call answers the parsed body and raises Refused or Unreachable; an answer that
    is read as something that it is not raises pydantic's ValidationError."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._url = connection.url
        self._workspace = f"/api/v1/workspaces/{_part(workspace)}"
        self._http = httpx.Client(
            base_url=connection.url,
            headers={"Authorization": f"Bearer {connection.token}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str, **query: object) -> Any:
        """`path` is below the workspace, its segments quoted with `segment`."""
        return self._call("GET", self._workspace + path, params=_given(query))

    def url_of(self, path: str) -> str:
        """The whole address of a path that the server has answered."""
        return f"{self._url}{path}"

    def preview(self, cron: str, timezone: str, count: int) -> Any:
        return self._call("GET", "/api/v1/preview", params={"cron": cron, "timezone": timezone, "count": count})

    def put(self, path: str, body: object) -> Any:
        return self._call("PUT", self._workspace + path, json=body)

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._call("POST", self._workspace + path, headers=named, **({"json": body} if body is not None else {}))

    def delete(self, path: str) -> Any:
        return self._call("DELETE", self._workspace + path)

    def pages(self, path: str, limit: int, **query: object) -> Iterator[Any]:
        """The first `limit` items of a list, page by page."""
        return islice(self._items(path, min(limit, PAGE), query), limit)

    def download(self, path: str, start: int | None = None, end: int | None = None) -> Iterator[bytes]:
        """What a path answers that is no JSON, a piece at a time: all of it, or the bytes from `start` up to `end`."""
        asked = {} if start is None or end is None else {"Range": f"bytes={start}-{end - 1}"}
        try:
            with self._http.stream("GET", self._workspace + path, headers=asked) as response:
                if not response.is_success:
                    response.read()
                    _body(response, self._url)
                yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise Unreachable(f"{self._url} broke off: {error}.") from error

    def _items(self, path: str, size: int, query: dict[str, object]) -> Iterator[Any]:
        cursor = None
        while True:
            page = Items.model_validate(self.get(path, limit=size, cursor=cursor, **query))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def _call(self, method: str, path: str, **request: Any) -> Any:
        try:
            response = self._http.request(method, path, **request)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(f"No answer from {self._url}: {error}. Is 'almanac up' or the API running?") from error
        return _body(response, self._url)


def segment(text: str) -> str:
    """The end of a path that is a name; its slashes are kept, because routes for names take them as they are."""
    return "/".join(_part(part) for part in text.split("/"))


def _part(text: str) -> str:
    """One part of a path. `.` and `..` would be taken for steps along it, and lead to another address."""
    return "%2E" * len(text) if text in (".", "..") else quote(text, safe="")


def _given(query: dict[str, object]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _body(response: httpx.Response, url: str) -> Any:
    try:
        body = response.json() if response.content else None
    except ValueError as error:
        raise Unreachable(f"What answers at {url} is no Almanac: status {response.status_code}, no JSON.") from error
    if response.is_success:
        return body
    if not isinstance(body, dict) or not {"code", "status", "detail"} <= body.keys():
        raise Unreachable(f"What answers at {url} is no Almanac: status {response.status_code}.")
    raise Refused(body)
