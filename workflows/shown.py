"""What Temporal shows of a schedule beside its history: its details, and the attributes that people filter by."""

from __future__ import annotations

from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities import visibility
    from domain.schedule_state import ScheduleState
    from workflows import words


class Shown:
    """Keeps both up to date. Attributes cost history, so only when they changed."""

    def __init__(self) -> None:
        self._attributes: tuple[str, str, str, datetime | None] | None = None

    def update(self, state: ScheduleState) -> None:
        workflow.set_current_details(words.schedule_details(state))
        planned = state.next_planned
        pipeline = visibility.pipeline_of(state.target)
        attributes = (state.definition.name, pipeline, state.condition, planned.at if planned else None)
        if attributes == self._attributes:
            return
        self._attributes = attributes
        name, pipeline, condition, due = attributes
        workflow.upsert_search_attributes(
            [
                visibility.WORKSPACE.value_set(state.workspace),
                visibility.SCHEDULE.value_set(name),
                visibility.PIPELINE.value_set(pipeline),
                visibility.CONDITION.value_set(condition),
                visibility.NEXT_DUE.value_set(due) if due else visibility.NEXT_DUE.value_unset(),
            ]
        )
