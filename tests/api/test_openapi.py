"""The description of the API holds together."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

METHODS = {"get", "put", "post", "delete"}


@pytest.fixture
async def document(dark: httpx.AsyncClient) -> dict[str, Any]:
    return dict((await dark.get("/api/v1/openapi.json")).json())


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    }


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    named = re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))

    assert named
    assert set(named) <= set(document["components"]["schemas"])


async def test_every_operation_says_what_it_does_and_how_it_is_refused(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        assert operation.get("description"), name
        assert "application/problem+json" in operation["responses"]["default"]["content"], name
        assert "422" not in operation["responses"], name
        assert ("security" in operation) == (not {"health", "webhooks"} & set(operation["tags"])), name


async def test_every_body_is_described(document: dict[str, Any]) -> None:
    with_body = {name for name, operation in operations(document).items() if "requestBody" in operation}

    root = "/api/v1/workspaces/{workspace}"
    assert with_body == {
        f"put {root}",
        f"post {root}/schedules",
        f"put {root}/schedules/{{schedule_id}}",
        f"post {root}/schedules/{{schedule_id}}/run-now",
        f"put {root}/pipelines/{{name}}",
        f"post {root}/pipelines/{{name}}/release",
        f"post {root}/pipelines/{{name}}/current",
        f"post {root}/pipelines/{{name}}/runs",
    }
