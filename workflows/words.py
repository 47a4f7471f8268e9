"""What Temporal's UI says about a schedule, a lane and a run, in words and local times."""

from __future__ import annotations

from datetime import datetime

from domain.lane import Lane, LaneEntry
from domain.occurrences import Occurrence
from domain.run import ParentWait, Run
from domain.schedule import Condition
from domain.schedule_state import ScheduleState


def schedule_timer(state: ScheduleState) -> str:
    planned = state.next_planned
    return f"until {local(planned.occurrence, state.definition.timezone)}" if planned else "until it can be told"


def schedule_details(state: ScheduleState) -> str:
    """Markdown: the condition, the next occurrences in local time, and what is under way."""
    definition = state.definition
    pattern = f"`{definition.cron}`" if definition.cron else "driven by its parents ·"
    lines = [f"**{definition.name}** · {pattern} {definition.timezone} · {_condition(state)}"]
    if state.fires and state.plan is not None:
        lines += ["", f"Next occurrences (zone data {state.plan.tzdata_version}):"]
        lines += [f"- {local(occurrence, definition.timezone)}" for occurrence in state.ahead]
    if state.open_runs:
        lines += ["", "Under way:", *(f"- {run_line(open_run.run)}" for open_run in state.open_runs)]
    for waiting in state.waiting:
        lines += ["", f"{run_line(waiting.run)}, until {utc(waiting.question.until)}:"]
        lines += [f"- {parent_line(parent)}" for parent in waiting.run.waits_for]
    if state.last_run is not None:
        last = state.last_run
        lines += ["", f"Latest run: {last.run_id} {_outcome(last.state, last.reason)}, {utc(last.at)}"]
    if state.untold:
        lines += ["", f"{state.untold} changes wait for the database."]
    if state.is_congested:
        lines += ["It fires nothing new until they have arrived there; what falls due meanwhile is counted then."]
    return "\n".join(lines)


def lane_details(target: str, lane: Lane) -> str:
    holder = _holder(lane.holder) if lane.holder else "free"
    lines = [f"**{target}** · {holder}"]
    if lane.waiting:
        lines += ["", "Waiting:"]
        lines += [
            f"- priority {entry.priority}: {run_line(entry.run)}, worth starting until {utc(entry.run.start_by)}"
            for entry in sorted(lane.waiting, key=lambda e: (e.priority, e.run.reference_time, e.arrival))
        ]
    return "\n".join(lines)


def run_details(run: Run) -> str:
    lines = [f"**{run.run_id}** · {_outcome(run.state, run.reason)}"]
    if run.message:
        lines += ["", run.message]
    of = f"schedule: {run.schedule_name} (revision {run.schedule_revision})" if run.schedule_id else "manual"
    lines += ["", f"- {of}", f"- target: {run.target}"]
    lines.append(f"- due: {utc(run.scheduled_for)}" if run.scheduled_for else f"- asked for: {utc(run.reference_time)}")
    if run.run_folder:
        lines.append(f"- folder: `{run.run_folder}`")
    if run.execution_id:
        lines.append(f"- execution: `{run.execution_id}`")
    return "\n".join(lines)


def run_line(run: Run) -> str:
    return f"{run.run_id} {_outcome(run.state, run.reason)}"


def parent_line(parent: ParentWait) -> str:
    """A parent, the occurrence that is waited for, how that is and since when."""
    what = _outcome(parent.run_state, parent.reason) if parent.run_state else parent.status.replace("_", " ")
    due = f", due {utc(parent.occurrence)}" if parent.occurrence else ""
    by = f", run {parent.run_id}" if parent.run_id else ""
    return f"{parent.name or parent.schedule_id}{due}: {what} since {utc(parent.since)}{by}"


def local(occurrence: Occurrence, zone: str) -> str:
    """Local wall time, zone, and the instant where a gap made the two differ."""
    reading = occurrence.nominal[-1].strftime("%a %Y-%m-%d %H:%M")
    note = f" (that time does not exist: {utc(occurrence.at)})" if occurrence.kind == "gap" else ""
    return f"{reading} {zone}{note}"


def utc(instant: datetime | None) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%SZ") if instant else "-"


def _holder(entry: LaneEntry) -> str:
    return f"held by {run_line(entry.run)}"


def _outcome(state: str, reason: str | None) -> str:
    return f"{state} ({reason})" if reason else state


def _condition(state: ScheduleState) -> str:
    if state.condition is Condition.BLOCKED and state.blocked is not None:
        said = f": {state.blocked.message}" if state.blocked.message else ""
        return f"**blocked** ({state.blocked.cause}){said}"
    return state.condition
