"""The dependencies of a whole workspace: a graph without circles, whose every arrow leads to a living schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.errors import Conflict, Invalid
from domain.schedule import ScheduleDefinition

Edges = Mapping[str, Sequence[str]]
"""Schedule id -> the ids of its parents; every living schedule of the workspace is a key."""


def check(schedule_id: str, definition: ScheduleDefinition, edges: Edges, names: Mapping[str, str]) -> None:
    """Refuses parents that don't live in this workspace, the schedule itself, and a circle through any number of
    others, which it prints."""
    listed = definition.after_schedule_ids or ()
    for parent in definition.parents:
        field = f"after_schedule_ids.{listed.index(parent)}" if parent in listed else "after_schedule_id"
        if parent == schedule_id:
            raise Invalid("schedule.validation.dependency_self", "A schedule can't wait for itself.", field=field)
        if parent not in edges:
            raise Invalid(
                "schedule.validation.dependency_unknown",
                f"There is no schedule '{parent}' in this workspace.",
                field=field,
                hint="`almanac list` shows the ids.",
            )
    circle = _circle(schedule_id, {**edges, schedule_id: definition.parents})
    if circle:
        path = " -> ".join(names.get(each, each) for each in circle)
        raise Invalid(
            "schedule.validation.dependency_cycle",
            f"These schedules would wait for each other in a circle: {path}.",
            field="after_schedule_ids",
            cycle=list(circle),
        )


def check_deletable(schedule_id: str, edges: Edges, names: Mapping[str, str]) -> None:
    dependents = [each for each, parents in edges.items() if schedule_id in parents]
    if dependents:
        listed = ", ".join(names.get(each, each) for each in dependents)
        raise Conflict(
            "schedule.has_dependents",
            f"Other schedules wait for this one: {listed}. Change or delete them first.",
            dependents=[{"schedule_id": each, "name": names.get(each, each)} for each in dependents],
        )


def _circle(start: str, edges: Edges) -> tuple[str, ...]:
    """The shortest path from `start` back to itself, with `start` at both ends; empty where there is none."""
    came_from: dict[str, str] = {}
    frontier = [start]
    while frontier:
        reached: list[str] = []
        for child in frontier:
            for parent in edges.get(child, ()):
                if parent == start:
                    return _path(start, child, came_from)
                if parent not in came_from:
                    came_from[parent] = child
                    reached.append(parent)
        frontier = reached
    return ()


def _path(start: str, last: str, came_from: Mapping[str, str]) -> tuple[str, ...]:
    back = [start, last] if last != start else [start]
    while back[-1] != start:
        back.append(came_from[back[-1]])
    path = tuple(reversed(back))
    return path if path[-1] == start and len(path) > 1 else (*path, start)
