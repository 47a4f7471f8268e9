"""Puts the API together. It starts whatever is down and serves again when it is back, without a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from activities.catalogue import Catalogue
from activities.past_runs import PastRuns
from api import hooks, openapi, pipeline_runs, pipelines, places, problems, run_chain, run_files, runs, schedules
from api.advising import Adviser
from api.manual_runs import ManualRuns
from api.parts import Parts
from api.settings import Settings
from api.temporal import ScheduleWorkflows
from api.token import RequireToken, read_token
from api.writing import ScheduleWriter
from executors.pipeline import PipelineExecutor
from executors.registry import installed
from executors.review import ReviewExecutor
from executors.vault import Vault
from executors.workflow import WorkflowExecutor
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.dependencies import Dependencies
from readmodel.hooks import Hooks
from readmodel.names import Names
from readmodel.pipelines import Pipelines
from readmodel.queries import Queries
from readmodel.results import Results
from readmodel.workspaces import Workspaces


def create(settings: Settings) -> FastAPI:
    """The API under these settings. Raises TokenUnusable when its token can't be read, or others can read it, and
    KeyUnusable the same of its keys."""
    token = read_token(settings.token_file)
    vault = Vault.at(settings.secret_key_file)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(settings.database_url)
        app.state.parts = await _parts(settings, database, vault)
        yield
        await database.close()

    app = FastAPI(
        title="Almanac",
        version="1",
        summary="A durable scheduler on Temporal.",
        description=openapi.DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        # An address with a slash too many is no address: a redirect would be neither the answer nor a problem.
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for part in (schedules, runs, run_files, run_chain, pipeline_runs, pipelines, hooks, places):
        app.include_router(part.router)
    problems.install(app)
    openapi.install(app)
    app.add_middleware(RequireToken, token=token)
    app.add_middleware(problems.LastResort)
    return app


async def _parts(settings: Settings, database: Database, vault: Vault) -> Parts:
    queries, pipelines = Queries(database), Pipelines(database)
    workflows = await ScheduleWorkflows.at(settings.temporal_address, settings.temporal_namespace)
    catalogue = Catalogue(pipelines)
    executor = PipelineExecutor(catalogue, vault)
    reviews = ReviewExecutor(executor, catalogue, PastRuns(queries))
    executors = installed([executor, reviews, WorkflowExecutor()])
    names, dependencies = Names(database), Dependencies(database)
    workspaces = Workspaces(database)
    writer = ScheduleWriter(
        database, queries, names, dependencies, workflows, workspaces, executors, settings, Claims(database)
    )
    manual = ManualRuns(database, queries, workflows, executors, settings.heartbeat_interval_seconds)
    adviser = Adviser(database, queries, dependencies)
    return Parts(
        settings,
        database,
        queries,
        pipelines,
        workspaces,
        workflows,
        writer,
        manual,
        adviser,
        Hooks(database),
        Results(database),
    )
