"""The description of the API for programs: what FastAPI knows, plus the bodies and problems that it doesn't."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from api.pipeline_runs import ManualRunRequest
from api.pipelines import PointRequest, ReleaseRequest
from api.places import WorkspaceChange
from api.problems import MEDIA_TYPE, Problem
from api.schedules import RunNowRequest, ScheduleReplacement
from domain.pipeline import PipelineDefinition
from domain.schedule import ScheduleDefinition

DESCRIPTION = """\
Schedules fire pipelines durably. Every request carries `Authorization: Bearer <token>`, but for those of health and the
deliveries of webhooks.

Every error is `application/problem+json`: `code` is stable and for programs, `detail` is for people, `field` is the
path of the field at fault, and `hint` says what to do. A write is visible in the very next read. Lists are pages:
follow `next_cursor` until it is null. Times are UTC.
"""

BODIES = (
    ScheduleDefinition,
    ScheduleReplacement,
    RunNowRequest,
    WorkspaceChange,
    PipelineDefinition,
    PointRequest,
    ReleaseRequest,
    ManualRunRequest,
    Problem,
)

OPEN_TAGS = {"health", "webhooks"}


def install(app: FastAPI) -> None:
    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    _, schemas = models_json_schema(
        [(model, "validation") for model in BODIES], ref_template="#/components/schemas/{model}"
    )
    components["schemas"] = components.get("schemas", {}) | schemas["$defs"]
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path in document["paths"].values():
        for operation in path.values():
            _complete(operation)
    return document


def _complete(operation: dict[str, Any]) -> None:
    """Says the one way in which every operation is refused, and that it needs the token."""
    operation["responses"].pop("422", None)
    problem = {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}
    operation["responses"]["default"] = {"description": "Refused.", "content": {MEDIA_TYPE: problem}}
    if not OPEN_TAGS & set(operation.get("tags", ())):
        operation["security"] = [{"token": []}]
