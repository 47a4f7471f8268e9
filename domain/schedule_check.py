"""What a schedule's definition must fulfil before it is kept, as far as it can be told from itself."""

from __future__ import annotations

from datetime import datetime

from domain import cron, names, occurrences, risk, zones
from domain.errors import Invalid
from domain.schedule import ScheduleDefinition


def check(definition: ScheduleDefinition) -> ScheduleDefinition:
    """The definition as it will be kept. Raises Invalid with the path of the field."""
    names.check(definition.name)
    zones.load(definition.timezone)
    risk.check_acknowledged(definition)
    if definition.after_schedule_ids == ():
        raise Invalid(
            "schedule.validation.dependency_empty",
            "The list of parents is empty.",
            field="after_schedule_ids",
            hint="Name at least one schedule, or leave the field out.",
        )
    if definition.cron is None:
        _check_driven(definition)
        return definition
    pattern = cron.parse(definition.cron)
    _check_deadline(definition, pattern)
    return definition.model_copy(update={"cron": pattern.text})


def check_interval(definition: ScheduleDefinition, now: datetime, min_interval_seconds: int) -> None:
    """Refuses a pattern that is due too often in the 14 days after `now`."""
    if definition.cron is not None:
        pattern, zone = cron.parse(definition.cron), zones.load(definition.timezone)
        occurrences.check_interval(pattern, zone, now, min_interval_seconds)


def _check_driven(definition: ScheduleDefinition) -> None:
    if not definition.parents:
        raise Invalid(
            "schedule.validation.cron_missing",
            "A schedule needs a pattern, or parents whose occurrences drive it.",
            field="cron",
            hint="Set cron, or name its parents in after_schedule_ids.",
        )


def _check_deadline(definition: ScheduleDefinition, pattern: cron.Pattern) -> None:
    """Without `+1` the deadline is on the occurrence's own date, so it has to come after at least one due time."""
    deadline = definition.dependency_deadline
    if deadline is None or deadline.endswith("+1") or not definition.parents:
        return
    earliest = f"{min(pattern.hours):02}:{min(pattern.minutes):02}"
    if deadline <= earliest:
        raise Invalid(
            "schedule.validation.deadline_unreachable",
            f"The deadline {deadline} can never be met: the earliest occurrence of a day is due at {earliest}.",
            field="dependency_deadline",
            hint=f"Choose a later time, or {deadline}+1 for the next day.",
        )
