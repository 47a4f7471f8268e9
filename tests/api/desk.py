"""One workspace over REST: what tests of the API keep asking for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from domain.run import FINAL_STATES
from tests.waiting import eventually

PIPELINE = "daily/report"


@dataclass(frozen=True)
class Desk:
    http: httpx.AsyncClient
    workspace: str

    @property
    def root(self) -> str:
        return f"/api/v1/workspaces/{self.workspace}"

    async def open(self) -> None:
        assert (await self.http.put(self.root)).status_code == 200
        await self.release(PIPELINE, ["true"])

    async def release(self, name: str, argv: list[str]) -> None:
        saved = await self.put(f"/pipelines/{name}", pipeline(name, argv))
        assert saved.status_code == 200, saved.text
        released = await self.post(f"/pipelines/{name}/release")
        assert released.status_code == 200, released.text

    async def get(self, path: str, **query: Any) -> httpx.Response:
        return await self.http.get(self.root + path, params=query)

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        json = {} if body is None else {"json": body}
        return await self.http.post(self.root + path, headers=named, **json)

    async def put(self, path: str, body: Any, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.put(self.root + path, json=body, headers=named)

    async def delete(self, path: str) -> httpx.Response:
        return await self.http.delete(self.root + path)

    async def created(self, **changes: Any) -> dict[str, Any]:
        answer = await self.post("/schedules", definition(**changes))
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def ended(self, run_id: str) -> dict[str, Any]:
        """The run, once it has ended."""

        async def look() -> dict[str, Any] | None:
            run: dict[str, Any] = (await self.get(f"/runs/{run_id}")).json()
            return run if run["state"] in FINAL_STATES else None

        return await eventually(look, what=f"the end of {run_id}")


def definition(**changes: Any) -> dict[str, Any]:
    """The body of a schedule that is right, but for `changes`; None leaves a field out."""
    body: dict[str, Any] = {
        "name": "daily/report",
        "cron": "0 9 1 1 *",
        "timezone": "Europe/Berlin",
        "payload": {"pipeline": PIPELINE, "version": "current"},
    } | changes
    return {name: value for name, value in body.items() if value is not None}


def pipeline(name: str, argv: list[str]) -> dict[str, Any]:
    return {"name": name, "steps": [{"id": "only", "command": argv}]}
