"""An occurrence fell due: those that wait for it can be answered, and those that it drives are told."""

from __future__ import annotations

from datetime import datetime

from domain import schedule_parent
from domain.run import Run
from domain.schedule_mail import AnnounceDue, ParentDue
from domain.schedule_state import ScheduleState


def fell_due(state: ScheduleState, at: datetime, nominal: tuple[datetime, ...], run: Run) -> ScheduleState:
    dates = tuple(dict.fromkeys(reading.date() for reading in nominal))
    due = ParentDue(parent_id=state.schedule_id, at=at, nominal=nominal, dates=dates)
    letters = tuple(AnnounceDue(schedule_id=dependent, due=due) for dependent in state.parenthood.subscribers)
    parenthood = schedule_parent.recorded(state.parenthood, at, nominal, run)
    if state.definition.is_driven:
        parenthood = schedule_parent.rematch(parenthood)
    return state.but(parenthood=parenthood, letters=(*state.letters, *letters))
