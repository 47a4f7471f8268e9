"""The one place where a worker is put together."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from activities.account import Account
from activities.catalogue import Catalogue
from activities.detached import DetachedActivities
from activities.executions import ExecutionActivities
from activities.inquiry import InquiryActivities
from activities.kinship import KinshipActivities
from activities.lifeline import LONGEST_SILENCE_SECONDS
from activities.mirror import MirrorActivities
from activities.past_runs import PastRuns
from activities.planning import PlanningActivities
from activities.post import PostActivities
from activities.retention import Retention
from activities.watching import WatchingActivities
from domain import messages
from executors.pipeline import PipelineExecutor
from executors.registry import Registry, installed
from executors.review import ReviewExecutor
from executors.started_workflows import Workflows
from executors.vault import Vault
from executors.workflow import WorkflowExecutor
from readmodel.claims import Claims
from readmodel.database import Database
from readmodel.pipelines import Pipelines
from readmodel.projection import Projector
from readmodel.queries import Queries
from readmodel.results import Results
from readmodel.workspaces import Workspaces
from worker.converter import DATA_CONVERTER
from worker.sandbox import runner
from worker.settings import WorkerSettings
from workflows.lane import LaneWorkflow
from workflows.run import RunWorkflow
from workflows.schedule import ScheduleWorkflow

WORKFLOWS = [ScheduleWorkflow, LaneWorkflow, RunWorkflow]


async def connect(settings: WorkerSettings) -> Client:
    return await Client.connect(
        settings.temporal_address, namespace=settings.temporal_namespace, data_converter=DATA_CONVERTER
    )


def executors(client: Client, database: Database, vault: Vault) -> Registry:
    catalogue = Catalogue(Pipelines(database))
    workflows = Workflows(client)
    pipelines = PipelineExecutor(catalogue, vault, workflows)
    reviews = ReviewExecutor(pipelines, catalogue, PastRuns(Queries(database)))
    return installed([pipelines, reviews, WorkflowExecutor(workflows)])


def workers(client: Client, database: Database, executors: Registry, settings: WorkerSettings) -> tuple[Worker, Worker]:
    """One for workflows and their short activities, one whose slots are the executions."""
    projector = Projector(database)
    planning = PlanningActivities(heartbeat_seconds=settings.heartbeat_interval_seconds)
    mirror = MirrorActivities(projector)
    post = PostActivities(client, projector)
    kinship = KinshipActivities(Queries(database))
    watching = WatchingActivities(client)
    claims = Claims(database)
    account = Account(claims, Results(database), settings.storage)
    detached = DetachedActivities(executors, account)
    inquiry = InquiryActivities(claims, Queries(database), settings.storage, detached)
    executions = ExecutionActivities(
        client=client,
        executors=executors,
        claims=claims,
        account=account,
        workspaces=Workspaces(database),
        storage=settings.storage,
        worker=settings.worker_name,
        retention=Retention(Queries(database), projector, settings.storage),
        record_timeout_seconds=settings.record_timeout_seconds,
    )
    entities = Worker(
        client,
        task_queue=messages.TASK_QUEUE,
        workflows=WORKFLOWS,
        activities=[
            planning.look_around,
            mirror.project,
            mirror.project_bundle,
            post.tell_lane,
            post.tell_schedule,
            post.tell_kin,
            kinship.match_occurrences,
            kinship.wait_ends,
            watching.await_run_end,
            inquiry.inquire,
            inquiry.await_late_truth,
            detached.launch,
            detached.observe,
            detached.cancel,
        ],
        workflow_runner=runner(),
        max_cached_workflows=settings.max_cached_workflows,
        max_concurrent_activities=5000,
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(minimum=2, maximum=20, initial=5),
    )
    slots = Worker(
        client,
        task_queue=messages.EXECUTIONS_QUEUE,
        activities=[executions.execute_run],
        max_concurrent_activities=settings.max_concurrent_runs,
        max_heartbeat_throttle_interval=timedelta(seconds=LONGEST_SILENCE_SECONDS),
        graceful_shutdown_timeout=timedelta(seconds=settings.drain_seconds),
    )
    return entities, slots
