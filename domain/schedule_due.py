"""What time does to a schedule: what is due, what was missed, and when the plan has to be looked up anew."""

from __future__ import annotations

from datetime import datetime

from domain import ids, missed, schedule_dependent, schedule_parent
from domain.dependency import Question
from domain.planning import LookAround, Seen
from domain.run import Missed, Origin, RunState, record
from domain.schedule import Backlog
from domain.schedule_block import blocked_by_definition
from domain.schedule_fell_due import fell_due
from domain.schedule_lane import request_lane
from domain.schedule_state import ScheduleState, changed, in_force, new_run


def planned_backlog(state: ScheduleState, now: datetime) -> Backlog | None:
    """What fell due since the cursor, as far as the plan reaches."""
    due = [p for p in state.plan.planned if state.cursor < p.at <= now] if state.plan else []
    if not due:
        return None
    previous = due[-2].at if len(due) > 1 else None
    return Backlog(count=len(due), first=due[0].at, previous=previous, latest=due[-1])


def look_around(state: ScheduleState, now: datetime) -> LookAround | None:
    """What the plan does not tell and has to be looked up, None while it tells enough. The plan holds as far as it
    reaches, so only what lies beyond its end is asked for."""
    cron = state.definition.cron
    if not state.fires or cron is None:
        return None
    reach = state.cursor
    if state.plan is not None:
        if not state.plan.planned or state.plan.planned[-1].at > now:
            return None
        reach = max(state.cursor, state.plan.planned[-1].at)
    return LookAround(
        cron=cron,
        timezone=state.definition.timezone,
        max_start_delay_minutes=state.definition.max_start_delay_minutes,
        start_deadline=state.definition.start_deadline,
        after=reach,
        now=max(now, reach),
        waits=bool(state.definition.parents),
        dependency_deadline=state.definition.dependency_deadline,
        last_nominal=_last_nominal(state, now),
    )


def seen(state: ScheduleState, found: Seen, now: datetime) -> ScheduleState:
    """Takes in what was looked up: deals with what is due, by the old plan and beyond it, and keeps the new plan."""
    backlog = _joined(planned_backlog(state, now), found.backlog)
    state = state.but(plan=found.plan)
    return due(state, backlog, now) if backlog else state


def not_accepted(state: ScheduleState, refusal: str, now: datetime) -> ScheduleState:
    """The definition can't be looked up any more. What the last plan has due is dealt with: it was planned while the
    definition was accepted. Then the schedule is blocked."""
    backlog = planned_backlog(state, now)
    settled = due(state, backlog, now) if backlog else state
    return blocked_by_definition(settled, refusal, now)


def due(state: ScheduleState, backlog: Backlog, now: datetime) -> ScheduleState:
    """Decides what becomes of everything that fell due since the cursor, and moves the cursor."""
    revision = in_force(state, backlog.latest.at)
    policy = revision.definition
    decision = missed.decide(
        backlog,
        policy.missed_policy,
        now,
        lateness_seconds=policy.lateness_seconds,
        catch_up_max_age_seconds=policy.catch_up_max_age_seconds,
    )
    nominal = backlog.latest.occurrence.nominal[-1]
    state = state.but(cursor=max(now, state.cursor), last_nominal=nominal, earlier=())
    if decision.missed is not None:
        state = _missed(state, decision.missed, now)
    if decision.run is None:
        return state
    occurrence = decision.run.occurrence
    run = new_run(
        state,
        ids.occurrence_run_id(state.schedule_id, occurrence.at),
        decision.origin,
        now,
        reference_time=occurrence.at,
        scheduled_for=occurrence.at,
        nominal=occurrence.nominal,
        start_by=decision.run.start_by,
        revision=revision,
    )
    state = fell_due(state, occurrence.at, occurrence.nominal, run)
    if not policy.parents:
        lateness = round((now - occurrence.at).total_seconds(), 3)
        return request_lane(state, record(run, lateness_seconds=lateness), revision, now)
    wait_until = decision.run.wait_until or now
    question = Question(
        dependent_id=state.schedule_id,
        run_id=run.run_id,
        dates=occurrence.local_dates,
        instant=occurrence.at,
        until=wait_until,
    )
    return schedule_dependent.wait(state, run, revision, now, question)


def _missed(state: ScheduleState, stretch: Missed, now: datetime) -> ScheduleState:
    run = new_run(
        state, ids.missed_run_id(state.schedule_id, stretch.first), Origin.CRON, now, reference_time=stretch.last
    )
    words = "1 occurrence" if stretch.count == 1 else f"{stretch.count} occurrences"
    summary = run.model_copy(
        update={
            "state": RunState.SKIPPED,
            "reason": "missed",
            "missed": stretch,
            "ended_at": now,
            "message": f"{words} fell due while nobody could act on them.",
        }
    )
    missing = changed(state, record(summary))
    return missing.but(last_missed=stretch, parenthood=schedule_parent.missed(missing.parenthood, stretch))


def _last_nominal(state: ScheduleState, now: datetime) -> datetime | None:
    due_by_plan = planned_backlog(state, now)
    return due_by_plan.latest.occurrence.nominal[-1] if due_by_plan else state.last_nominal


def _joined(planned: Backlog | None, beyond: Backlog | None) -> Backlog | None:
    if planned is None or beyond is None:
        return planned or beyond
    previous = beyond.previous or planned.latest.at
    return Backlog(count=planned.count + beyond.count, first=planned.first, previous=previous, latest=beyond.latest)
