"""Whose turn it is: a lane runs one run of its target at a time.

An occurrence that finds the lane held meets its schedule's collision policy:

| policy | the arriving occurrence | one already pending |
|---|---|---|
| skip | ends `overlap` (this schedule's own run is active) or `busy` | - |
| queue_latest | waits | ends `superseded` by the newer |
| retry | waits, or ends `overlap` while an older one is pending | stays |
| coalesce | waits, or ends `coalesced` into the pending one | stays, and stands for the newer too |

So a schedule has at most one pending occurrence. A Run now or a manual run is a person's request and not an
occurrence: it waits under every policy and is never displaced. The free lane goes to the highest priority (1 first),
then to the earliest reference time, then by arrival. A retry has a place in that line only when its time to try has
come; before, it gives way to all others, and takes the lane when there are none.

Every function takes the lane and returns what it becomes, with all that was done and not done.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import JsonValue

from domain import backoff, collision
from domain.run import Advanced, Run, RunState, advance, note, seize
from domain.schedule import CollisionPolicy
from domain.values import Value

FIRST_RETRY = timedelta(seconds=30)
LAST_RETRY = timedelta(seconds=300)
MISSED_HEARTBEATS = 6
"""So many in a row and a worker is taken for lost."""


class Launch(Value):
    """What a run's workflow needs besides the run itself, frozen with it and carried unread."""

    payload: dict[str, JsonValue]
    lateness_seconds: int
    """For how long a run that finds no free slot is tried again."""
    execution_timeout_seconds: int
    heartbeat_seconds: int
    """How often its worker has to say that it is alive; six missed ones mean that it is lost."""


class LaneEntry(Value):
    """A run that asks for the lane, with what it takes to decide about it and to start it."""

    run: Run
    launch: Launch
    policy: CollisionPolicy
    priority: int
    arrival: int = 0
    tries: int = 0
    try_at: datetime | None = None
    """When a retry may next take the lane."""

    @property
    def is_occurrence(self) -> bool:
        return self.run.is_occurrence


class Tombstone(Value):
    """The last run of a schedule, or a manual run, that ended here without starting. A request is delivered at least
    once, so the same one may come again; when it is no longer worth starting anyway, the stone can go."""

    schedule_id: str | None
    run_id: str
    until: datetime


class Lane(Value):
    holder: LaneEntry | None = None
    in_doubt_until: datetime | None = None
    """Set when the holder was lost: its work may still be going on, so it keeps the lane until then."""
    waiting: tuple[LaneEntry, ...] = ()
    arrivals: int = 0
    tombstones: tuple[Tombstone, ...] = ()
    """At most one of each schedule: its requests come in order, so only the last can come again. And one of each
    manual run."""

    def knows(self, run_id: str) -> bool:
        return run_id in [entry.run.run_id for entry in _all(self)] + [stone.run_id for stone in self.tombstones]

    @property
    def is_idle(self) -> bool:
        return self.holder is None and not self.waiting and not self.tombstones


class LaneDecision(Value):
    """What a lane became, which run is to be started, and what happened to whom and why."""

    lane: Lane
    started: LaneEntry | None = None
    changes: tuple[Advanced, ...] = ()


def arrive(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    """A run asks for the lane. A run the lane already knows changes nothing."""
    if lane.knows(entry.run.run_id):
        return LaneDecision(lane=lane)
    return _buried(_arrive(lane, entry, now))


def resumed(lane: Lane, entry: LaneEntry) -> LaneDecision:
    """A run that has begun asks again, because the lane that had started it is gone: the lane is its own, unless
    another has taken it since."""
    if lane.holder is not None:
        return LaneDecision(lane=lane)
    return LaneDecision(lane=_without(lane, (entry,)).model_copy(update={"holder": entry}))


def _arrive(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    if entry.run.start_by is not None and entry.run.start_by <= now:
        return LaneDecision(lane=lane, changes=(_expired(entry.run, now),))
    entry = entry.model_copy(update={"arrival": lane.arrivals})
    lane = lane.model_copy(update={"arrivals": lane.arrivals + 1})
    first = _pending(lane, entry)
    if lane.holder is None:
        return _start(lane, entry, now)
    if not entry.is_occurrence:
        return _wait(lane, entry, now)
    match entry.policy:
        case CollisionPolicy.SKIP:
            return _refuse(lane, entry, now)
        case CollisionPolicy.QUEUE_LATEST:
            return _wait(lane, entry, now) if first is None else _replace(lane, first, entry, now)
        case CollisionPolicy.RETRY:
            return _wait_for_retry(lane, entry, now) if first is None else _give_way(lane, first, entry, now)
        case CollisionPolicy.COALESCE:
            return _wait(lane, entry, now) if first is None else _fold(lane, first, entry, now)


def released(lane: Lane, run_id: str, now: datetime) -> LaneDecision:
    """The holder has ended. The end of any other run changes nothing."""
    if lane.holder is None or lane.holder.run.run_id != run_id:
        return LaneDecision(lane=lane)
    return tick(lane.model_copy(update={"holder": None, "in_doubt_until": None}), now)


def lost(lane: Lane, now: datetime) -> LaneDecision:
    """The holder's workflow was ended from outside, so nobody can say what its work did or does. The lane stays
    held, in doubt, for as long as a lost execution can go on: until its worker is told to stop it."""
    assert lane.holder is not None
    message = "Its workflow was ended from outside, so nobody can say whether its work happened."
    ended = advance(
        seize(lane.holder.run), RunState.UNKNOWN, now, kind="finished", reason="instance_lost", message=message
    )
    until = now + fence(lane.holder.launch.heartbeat_seconds)
    holder = lane.holder.model_copy(update={"run": ended.run})
    return LaneDecision(lane=lane.model_copy(update={"holder": holder, "in_doubt_until": until}), changes=(ended,))


def fence(heartbeat_seconds: int) -> timedelta:
    """How long after its last sign of life an execution may still go on: a worker that can't report stops its own
    executions before its missed heartbeats are counted as a loss; one more is the margin."""
    return timedelta(seconds=heartbeat_seconds * (MISSED_HEARTBEATS + 1))


def tick(lane: Lane, now: datetime) -> LaneDecision:
    """Time has passed: what is no longer worth starting ends, doubt about a lost holder is over, and a free lane
    goes to whoever is next."""
    if lane.in_doubt_until is not None and lane.in_doubt_until <= now:
        lane = lane.model_copy(update={"holder": None, "in_doubt_until": None})
    expired = tuple(entry for entry in lane.waiting if entry.run.start_by is not None and entry.run.start_by <= now)
    ended = tuple(_expired(entry.run, now) for entry in expired)
    stones = tuple(stone for stone in lane.tombstones if stone.until > now)
    lane = _without(lane, expired).model_copy(update={"tombstones": stones})
    if lane.holder is not None:
        after = _retry(lane, now)
    else:
        in_line = [entry for entry in lane.waiting if entry.try_at is None or entry.try_at <= now]
        first = min(in_line or lane.waiting, key=_turn, default=None)
        after = _start(_without(lane, (first,)), first, now) if first else LaneDecision(lane=lane)
    return _buried(after.model_copy(update={"changes": (*ended, *after.changes)}))


def withdrawn(
    lane: Lane, schedule_id: str, now: datetime, reason: str, message: str, *, only_occurrences: bool = False
) -> LaneDecision:
    """A schedule was paused, blocked, edited or deleted: what it has waiting ends. What holds the lane stays."""
    dropped = tuple(
        entry
        for entry in lane.waiting
        if entry.run.schedule_id == schedule_id and (entry.is_occurrence or not only_occurrences)
    )
    changes = tuple(collision.skipped(entry.run, now, reason, message) for entry in dropped)
    return _buried(LaneDecision(lane=_without(lane, dropped), changes=changes))


def dropped(lane: Lane, run_id: str, now: datetime, by: str) -> LaneDecision:
    """A person cancels one run that waits. One that does not wait is none of the lane's business."""
    waiting = tuple(entry for entry in lane.waiting if entry.run.run_id == run_id)
    changes = tuple(
        collision.skipped(entry.run, now, "operator", f"{by} cancelled it while it waited.") for entry in waiting
    )
    return _buried(LaneDecision(lane=_without(lane, waiting), changes=changes))


def next_wake(lane: Lane) -> datetime | None:
    """When `tick` next has something to do, unless the holder ends or somebody arrives before."""
    times = [entry.run.start_by for entry in lane.waiting if entry.run.start_by is not None]
    times += [entry.try_at for entry in lane.waiting if entry.try_at is not None]
    times += [stone.until for stone in lane.tombstones]
    times += [lane.in_doubt_until] if lane.in_doubt_until is not None else []
    return min(times, default=None)


def _all(lane: Lane) -> tuple[LaneEntry, ...]:
    return lane.waiting if lane.holder is None else (lane.holder, *lane.waiting)


def _buried(decision: LaneDecision) -> LaneDecision:
    stones = {stone.schedule_id or stone.run_id: stone for stone in decision.lane.tombstones}
    for change in decision.changes:
        run = change.run
        if run.is_final and run.start_by is not None and run.state is RunState.SKIPPED:
            stone = Tombstone(schedule_id=run.schedule_id, run_id=run.run_id, until=run.start_by)
            stones[run.schedule_id or run.run_id] = stone
    return decision.model_copy(update={"lane": decision.lane.model_copy(update={"tombstones": tuple(stones.values())})})


def _expired(run: Run, now: datetime) -> Advanced:
    return collision.skipped(run, now, "expired", "It waited for the lane until it was no longer worth starting.")


def _turn(entry: LaneEntry) -> tuple[int, datetime, int]:
    return (entry.priority, entry.run.reference_time, entry.arrival)


def _pending(lane: Lane, entry: LaneEntry) -> LaneEntry | None:
    """The one occurrence of the same schedule that already waits."""
    mine = (e for e in lane.waiting if e.run.schedule_id == entry.run.schedule_id and e.is_occurrence)
    return next(mine, None)


def _with(lane: Lane, entry: LaneEntry) -> Lane:
    """The lane with this entry waiting, in the place of an older copy of it."""
    others = tuple(e for e in lane.waiting if e.run.run_id != entry.run.run_id)
    return lane.model_copy(update={"waiting": (*others, entry)})


def _without(lane: Lane, gone: tuple[LaneEntry, ...]) -> Lane:
    ids = {entry.run.run_id for entry in gone}
    return lane.model_copy(update={"waiting": tuple(e for e in lane.waiting if e.run.run_id not in ids)})


def _start(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    changes: tuple[Advanced, ...] = ()
    if entry.run.state is RunState.WAITING:
        granted = advance(entry.run, RunState.QUEUED, now, kind="lane_granted")
        entry, changes = entry.model_copy(update={"run": granted.run}), (granted,)
    return LaneDecision(lane=lane.model_copy(update={"holder": entry}), started=entry, changes=changes)


def _wait(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    holder = lane.holder.run.run_id if lane.holder else None
    message = f"The lane of {entry.run.target} is held by {holder}." if holder else None
    waiting = advance(entry.run, RunState.WAITING, now, kind="lane_waiting", reason="lane", message=message)
    return LaneDecision(lane=_with(lane, entry.model_copy(update={"run": waiting.run})), changes=(waiting,))


def _refuse(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    own = next((e for e in _all(lane) if e.run.schedule_id == entry.run.schedule_id), None)
    if own is not None:
        message = f"The schedule's run {own.run.run_id} was still {own.run.state}."
        return LaneDecision(lane=lane, changes=(collision.skipped(entry.run, now, "overlap", message),))
    assert lane.holder is not None
    message = f"The lane of {entry.run.target} was held by {lane.holder.run.run_id}."
    return LaneDecision(lane=lane, changes=(collision.skipped(entry.run, now, "busy", message),))


def _replace(lane: Lane, older: LaneEntry, newer: LaneEntry, now: datetime) -> LaneDecision:
    ended = collision.superseded(older.run, newer.run, now)
    waits = _wait(_without(lane, (older,)), newer, now)
    return waits.model_copy(update={"changes": (ended, *waits.changes)})


def _wait_for_retry(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    return _wait(lane, entry.model_copy(update={"tries": 1, "try_at": now + FIRST_RETRY}), now)


def _give_way(lane: Lane, first: LaneEntry, entry: LaneEntry, now: datetime) -> LaneDecision:
    return LaneDecision(lane=lane, changes=(collision.gave_way(first.run, entry.run, now),))


def _fold(lane: Lane, first: LaneEntry, entry: LaneEntry, now: datetime) -> LaneDecision:
    kept, ended = collision.folded(first.run, entry.run, now)
    return LaneDecision(lane=_with(lane, first.model_copy(update={"run": kept.run})), changes=(kept, ended))


def _retry(lane: Lane, now: datetime) -> LaneDecision:
    """Retries whose time has come and that find the lane held wait twice as long, up to the longest pause."""
    changes: list[Advanced] = []
    for entry in lane.waiting:
        if entry.try_at is None or entry.try_at > now:
            continue
        pause = backoff.pause(FIRST_RETRY, entry.tries, LAST_RETRY)
        message = f"Try {entry.tries + 1}: the lane was still held."
        tried = note(entry.run, "lane_retried", now, message)
        changes.append(tried)
        lane = _with(lane, entry.model_copy(update={"run": tried.run, "tries": entry.tries + 1, "try_at": now + pause}))
    return LaneDecision(lane=lane, changes=tuple(changes))
