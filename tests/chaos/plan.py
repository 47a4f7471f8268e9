"""What a seed stands for: the schedules, what is done to them, and what is killed and when. Decided before anything
is started, so that the same seed is the same plan."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

WORKSPACES = ("default", "annex")
"""The second is switched off and on again."""

PATTERNS = ("* * * * *",) * 20 + ("*/2 * * * *", "1-59/2 * * * *", "*/3 * * * *", "0,7,13,21-50 * * * *")
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham", "America/New_York")
COLLISIONS = ("skip", "queue_latest", "retry", "coalesce")
MISSED = ("skip", "latest")

SHARE_DEPENDENT, SHARE_DRIVEN, SHARE_PARALLEL = 0.2, 0.08, 0.15
SPARE_EVERY = 8
"""One schedule in so many is created only while things go on."""


@dataclass(frozen=True)
class Pipeline:
    name: str
    steps: int
    seconds: float
    failing: int
    """One run of so many fails; 0 is none."""


@dataclass(frozen=True)
class Planned:
    """One schedule. Its parents are numbers of earlier ones of its workspace."""

    number: int
    workspace: str
    pipeline: str
    body: dict[str, Any]
    parents: tuple[int, ...] = ()
    spare: bool = False


@dataclass(frozen=True)
class Act:
    """`what` is done at so many seconds after the start to the schedule of this number; `chance` decides details."""

    at: float
    what: str
    number: int
    chance: float


@dataclass(frozen=True)
class Blow:
    """A part is killed, or halted for `seconds`. `part` is PostgreSQL, Temporal, api or worker; `chance` says which
    worker."""

    at: float
    part: str
    chance: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Size:
    seconds: float
    schedules: int
    act_every: float
    blow_every: float
    slowest_step: float = 25.0
    """Seconds, more or less."""
    heartbeat_seconds: int = 2

    @property
    def fence_seconds(self) -> float:
        """How long after its last sign of life a lost execution may still be going on: six missed heartbeats and one
        more."""
        return 7.0 * self.heartbeat_seconds


@dataclass(frozen=True)
class Plan:
    seed: int
    size: Size
    pipelines: tuple[tuple[str, Pipeline], ...]
    """With their workspaces."""
    schedules: tuple[Planned, ...]
    acts: tuple[Act, ...]
    blows: tuple[Blow, ...]


ACTS = {
    "run_now": 8,
    "run_now_signal": 5,
    "hook": 4,
    "manual": 4,
    "echo": 12,
    "edit_words": 2,
    "edit_policy": 3,
    "edit_timing": 3,
    "edit_target": 1,
    "pause": 4,
    "cancel": 5,
    "replan": 2,
    "create": 2,
    "delete": 1,
    "deactivate": 1,
}
"""What is done, and how often beside the others. Each is a function in `acts`."""

LATER = {"pause": "resume", "deactivate": "activate"}
"""What is undone after a while."""

BLOWS = {
    ("worker", "kill"): 14,
    ("api", "kill"): 2,
    ("Temporal", "kill"): 3,
    ("PostgreSQL", "kill"): 3,
    ("worker", "halt"): 3,
    ("worker", "long halt"): 2,
    ("Temporal", "halt"): 1,
    ("PostgreSQL", "halt"): 2,
}
HALTS = {"halt": (1.5, 6.0), "long halt": (15.0, 20.0)}
"""Seconds. A long one lasts until a worker is taken for lost."""


def plan(seed: int, size: Size, now: datetime) -> Plan:
    """`now` decides only what can't be decided without it: a deadline within the run."""
    chance = random.Random(seed)
    pipelines = tuple(_pipelines(chance, size))
    schedules: list[Planned] = []
    for number in range(size.schedules):
        schedules.append(_schedule(chance, number, schedules, pipelines, now, size))
    return Plan(seed, size, pipelines, tuple(schedules), _acts(chance, size), _blows(chance, size))


def _pipelines(chance: random.Random, size: Size) -> list[tuple[str, Pipeline]]:
    found = []
    for number in range(max(size.schedules * 6 // 10, 3)):
        workspace = WORKSPACES[number % 6 == 5]
        seconds = min(chance.choice((0.2, 0.3, 0.5, 1.0, 2.0, 8.0, 25.0)) if number else 8.0, size.slowest_step)
        pipeline = Pipeline(f"p{number}", chance.choice((1, 1, 1, 2)), seconds, chance.choice((0, 0, 7)))
        found.append((workspace, pipeline))
    return found


def _schedule(
    chance: random.Random,
    number: int,
    earlier: Sequence[Planned],
    pipelines: Sequence[tuple[str, Pipeline]],
    now: datetime,
    size: Size,
) -> Planned:
    workspace, pipeline = pipelines[number % len(pipelines)]
    body: dict[str, Any] = {
        "name": f"chaos/s{number}",
        "cron": chance.choice(PATTERNS),
        "timezone": chance.choice(ZONES),
        "payload": {"pipeline": pipeline.name, "version": "current"},
        "collision_policy": COLLISIONS[number % 4],
        "missed_policy": MISSED[number // 2 % 2],
        "lateness_seconds": chance.choice((600, 600, 90, 40)),
        "max_start_delay_minutes": chance.choice((1440, 1440, 1, 2)),
        "priority": chance.choice((1, 5, 5, 9)),
    }
    if chance.random() < SHARE_PARALLEL:
        body |= {"admission": "parallel", "acknowledged_risk": 1}
    known = [each for each in earlier if each.workspace == workspace and not each.spare]
    kind = chance.random()
    parents: tuple[int, ...] = ()
    if known and kind < SHARE_DEPENDENT + SHARE_DRIVEN:
        parents = tuple(each.number for each in chance.sample(known, min(len(known), chance.choice((1, 1, 2, 3, 4)))))
        body |= _waiting(chance, now, size)
        if kind < SHARE_DRIVEN:
            body.pop("cron")
            parents = parents[: chance.choice((1, 1, 3))]
            body.pop("dependency_deadline", None)
    spare = number % SPARE_EVERY == SPARE_EVERY - 1
    return Planned(number, workspace, pipeline.name, body, parents, spare)


def _waiting(chance: random.Random, now: datetime, size: Size) -> dict[str, Any]:
    waiting = {
        "after_terminal_status": chance.choice(("completed", "any_terminal", "any_terminal")),
        "after_delay_minutes": chance.choice((0, 0, 0, 1)),
    }
    deadline = now + timedelta(seconds=size.seconds * chance.uniform(0.5, 1.0))
    if chance.random() < 0.3 and deadline.date() == now.date():
        # In UTC, so that the day is the plan's own.
        waiting |= {"timezone": "UTC", "dependency_deadline": f"{deadline:%H:%M}"}
    return waiting


def _acts(chance: random.Random, size: Size) -> tuple[Act, ...]:
    acts: list[Act] = []
    at = 2.0
    while at < size.seconds:
        (what,) = chance.choices(list(ACTS), list(ACTS.values()))
        act = Act(at, what, chance.randrange(size.schedules), chance.random())
        acts.append(act)
        if what in LATER:
            acts.append(Act(at + chance.uniform(10, 80), LATER[what], act.number, chance.random()))
        at += chance.expovariate(1 / size.act_every)
    return tuple(sorted(acts, key=lambda act: act.at))


def _blows(chance: random.Random, size: Size) -> tuple[Blow, ...]:
    blows = []
    at = size.blow_every
    while at < size.seconds:
        ((part, how),) = chance.choices(list(BLOWS), list(BLOWS.values()))
        seconds = chance.uniform(*HALTS[how]) if how in HALTS else 0.0
        blows.append(Blow(at, part, chance.random(), seconds))
        at += size.blow_every * chance.uniform(0.6, 1.4)
    return tuple(blows)
