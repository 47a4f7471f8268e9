"""The search attributes by which people find schedules, lanes and runs in Temporal."""

from __future__ import annotations

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from domain.run import Run

WORKSPACE = SearchAttributeKey.for_keyword("AlmanacWorkspace")
SCHEDULE = SearchAttributeKey.for_keyword("AlmanacSchedule")
CONDITION = SearchAttributeKey.for_keyword("AlmanacCondition")
NEXT_DUE = SearchAttributeKey.for_datetime("AlmanacNextDue")
PIPELINE = SearchAttributeKey.for_keyword("AlmanacPipeline")
RUN_STATE = SearchAttributeKey.for_keyword("AlmanacRunState")
RUN_FOLDER = SearchAttributeKey.for_keyword("AlmanacRunFolder")

ALL = (WORKSPACE, SCHEDULE, CONDITION, NEXT_DUE, PIPELINE, RUN_STATE, RUN_FOLDER)


def lane(workspace: str, target: str) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [SearchAttributePair(WORKSPACE, workspace), SearchAttributePair(PIPELINE, pipeline_of(target))]
    )


def run(run: Run) -> TypedSearchAttributes:
    schedule = [SearchAttributePair(SCHEDULE, run.schedule_name)] if run.schedule_name is not None else []
    return TypedSearchAttributes(
        [
            SearchAttributePair(WORKSPACE, run.workspace),
            *schedule,
            SearchAttributePair(PIPELINE, pipeline_of(run.target)),
            SearchAttributePair(RUN_STATE, run.state),
        ]
    )


def pipeline_of(target: str) -> str:
    """`pipeline:finance/close` is shown as `finance/close`."""
    return target.partition(":")[2] or target
