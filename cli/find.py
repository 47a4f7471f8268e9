"""Finds what a person means: a schedule by its id, else by its name; a run by its id."""

from __future__ import annotations

import re

from cli.client import Client, Refused
from domain.names import name_key
from domain.schedule import ScheduleView

SCHEDULE_ID = re.compile(r"s[a-z2-7]{12}")
RUN_ID = re.compile(r"[A-Za-z0-9-]{1,100}")
MANY = 1_000


def schedule_named(client: Client, name: str) -> ScheduleView | None:
    """The schedule of this name; names are the same in any case."""
    for found in client.pages("/schedules", MANY, q=name):
        if name_key(found["definition"]["name"]) == name_key(name):
            return ScheduleView.model_validate(found)
    return None


def run_meant(run_id: str) -> str:
    """The id as a part of a path. Raises Refused for what can't be one."""
    if not RUN_ID.fullmatch(run_id):
        raise Refused(
            {
                "status": 404,
                "code": "run.not_found",
                "detail": f"There is no run '{run_id}' in this workspace.",
                "hint": "'almanac runs' shows their ids.",
            }
        )
    return run_id


def schedule_meant(client: Client, name_or_id: str) -> ScheduleView:
    """Raises Refused when there is none. An id wins over a name that looks like one."""
    if SCHEDULE_ID.fullmatch(name_or_id):
        try:
            return ScheduleView.model_validate(client.get(f"/schedules/{name_or_id}"))
        except Refused as refusal:
            if refusal.code != "schedule.not_found":
                raise
    found = schedule_named(client, name_or_id)
    if found is None:
        raise Refused(
            {
                "status": 404,
                "code": "schedule.not_found",
                "detail": f"There is no schedule '{name_or_id}' in this workspace.",
                "hint": "'almanac list' shows them all.",
            }
        )
    return found
