"""Whose turn it is: a lane runs one run of its target at a time.

An occurrence that finds the lane held meets its schedule's collision policy:

| policy | the arriving occurrence | one already pending |
|---|---|---|
| skip | ends `overlap` (this schedule's own run is active) or `busy` | - |
| queue_latest | waits | ends `superseded` by the newer |
| retry | waits for its next try, or ends `overlap` while an older one is pending | stays |
| coalesce | waits, or ends `coalesced` into the pending one | stays, and stands for the newer too |

So a schedule has at most one pending occurrence. A Run now is a person's request and not an occurrence: it
waits under every policy and is never displaced. The free lane goes to the highest priority (1 first), then
to the earliest reference time, then by arrival. A retry keeps no place in that line: it comes back at its
own times.

Every function takes the lane and returns what it becomes, with all that was done and not done.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import JsonValue

from domain.run import Folded, Origin, Run
from domain.schedule import CollisionPolicy
from domain.values import Value

FIRST_RETRY = timedelta(seconds=30)
LAST_RETRY = timedelta(seconds=300)


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
        return self.run.origin in (Origin.CRON, Origin.CATCH_UP)


class Lane(Value):
    holder: LaneEntry | None = None
    waiting: tuple[LaneEntry, ...] = ()
    arrivals: int = 0


class Ended(Value):
    """A run that will not start, and why."""

    run: Run
    reason: str
    message: str
    stands_in: str | None = None


class LaneDecision(Value):
    """What a lane became, and what happened to whom."""

    lane: Lane
    started: LaneEntry | None = None
    held_back: tuple[LaneEntry, ...] = ()
    """Entries that began to wait."""
    retried: tuple[LaneEntry, ...] = ()
    """Entries that tried and found the lane held."""
    folded: tuple[LaneEntry, ...] = ()
    """Pending entries that now stand for one more occurrence."""
    ended: tuple[Ended, ...] = ()


def arrive(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    """A run asks for the lane. A run the lane already knows changes nothing."""
    if any(known.run.run_id == entry.run.run_id for known in _all(lane)):
        return LaneDecision(lane=lane)
    entry = entry.model_copy(update={"arrival": lane.arrivals})
    lane = lane.model_copy(update={"arrivals": lane.arrivals + 1})
    if lane.holder is None and _pending(lane, entry) is None:
        return _start(lane, entry)
    if not entry.is_occurrence:
        return _wait(lane, entry)
    match entry.policy:
        case CollisionPolicy.SKIP:
            return LaneDecision(lane=lane, ended=(_refused(lane, entry),))
        case CollisionPolicy.QUEUE_LATEST:
            return _replace_pending(lane, entry)
        case CollisionPolicy.RETRY:
            return _keep_first(lane, entry, now)
        case CollisionPolicy.COALESCE:
            return _fold(lane, entry)


def released(lane: Lane, run_id: str, now: datetime) -> LaneDecision:
    """The holder has ended. The end of any other run changes nothing."""
    if lane.holder is None or lane.holder.run.run_id != run_id:
        return LaneDecision(lane=lane)
    return tick(lane.model_copy(update={"holder": None}), now)


def tick(lane: Lane, now: datetime) -> LaneDecision:
    """Time has passed: what is no longer worth starting ends, and a free lane goes to whoever is next."""
    expired = tuple(entry for entry in lane.waiting if entry.run.start_by is not None and entry.run.start_by <= now)
    lane = _without(lane, expired)
    ended = tuple(_expired(entry) for entry in expired)
    if lane.holder is not None:
        return _try_again(lane, now).model_copy(update={"ended": ended})
    ready = _ready(lane, now)
    if not ready:
        return LaneDecision(lane=lane, ended=ended)
    first = min(ready, key=_turn)
    granted = _start(_without(lane, (first,)), first)
    return granted.model_copy(update={"ended": ended})


def withdrawn(
    lane: Lane, schedule_id: str, reason: str, message: str, *, only_occurrences: bool = False
) -> LaneDecision:
    """A schedule was paused, blocked, edited or deleted: what it has waiting ends. What holds the lane stays."""
    dropped = tuple(
        entry
        for entry in lane.waiting
        if entry.run.schedule_id == schedule_id and (entry.is_occurrence or not only_occurrences)
    )
    ended = tuple(Ended(run=entry.run, reason=reason, message=message) for entry in dropped)
    return LaneDecision(lane=_without(lane, dropped), ended=ended)


def next_wake(lane: Lane) -> datetime | None:
    """When `tick` next has something to do, unless the holder ends or somebody arrives before."""
    times = [entry.run.start_by for entry in lane.waiting if entry.run.start_by is not None]
    times += [entry.try_at for entry in lane.waiting if entry.try_at is not None]
    return min(times, default=None)


def _all(lane: Lane) -> tuple[LaneEntry, ...]:
    return lane.waiting if lane.holder is None else (lane.holder, *lane.waiting)


def _ready(lane: Lane, now: datetime) -> list[LaneEntry]:
    return [entry for entry in lane.waiting if entry.try_at is None or entry.try_at <= now]


def _turn(entry: LaneEntry) -> tuple[int, datetime, int]:
    return (entry.priority, entry.run.reference_time, entry.arrival)


def _start(lane: Lane, entry: LaneEntry) -> LaneDecision:
    return LaneDecision(lane=lane.model_copy(update={"holder": entry}), started=entry)


def _wait(lane: Lane, entry: LaneEntry) -> LaneDecision:
    return LaneDecision(lane=lane.model_copy(update={"waiting": (*lane.waiting, entry)}), held_back=(entry,))


def _without(lane: Lane, gone: tuple[LaneEntry, ...]) -> Lane:
    ids = {entry.run.run_id for entry in gone}
    return lane.model_copy(update={"waiting": tuple(e for e in lane.waiting if e.run.run_id not in ids)})


def _pending(lane: Lane, entry: LaneEntry) -> LaneEntry | None:
    """The one occurrence of the same schedule that already waits."""
    mine = (e for e in lane.waiting if e.run.schedule_id == entry.run.schedule_id and e.is_occurrence)
    return next(mine, None)


def _refused(lane: Lane, entry: LaneEntry) -> Ended:
    own = next((e for e in _all(lane) if e.run.schedule_id == entry.run.schedule_id), None)
    if own is not None:
        return Ended(
            run=entry.run, reason="overlap", message=f"The schedule's run {own.run.run_id} was still going on."
        )
    holder = lane.holder.run.run_id if lane.holder else "another run"
    return Ended(run=entry.run, reason="busy", message=f"The lane of {entry.run.target} was held by {holder}.")


def _expired(entry: LaneEntry) -> Ended:
    return Ended(
        run=entry.run, reason="expired", message="It waited for the lane until it was no longer worth starting."
    )


def _replace_pending(lane: Lane, entry: LaneEntry) -> LaneDecision:
    older = _pending(lane, entry)
    if older is None:
        return _wait(lane, entry)
    newer = entry.run
    ended = Ended(
        run=older.run, reason="superseded", message=f"The newer {newer.run_id} took its place.", stands_in=newer.run_id
    )
    return _wait(_without(lane, (older,)), entry).model_copy(update={"ended": (ended,)})


def _keep_first(lane: Lane, entry: LaneEntry, now: datetime) -> LaneDecision:
    first = _pending(lane, entry)
    if first is None:
        return _wait(lane, entry.model_copy(update={"tries": 1, "try_at": now + FIRST_RETRY}))
    message = f"The older {first.run.run_id} was still being retried."
    return LaneDecision(lane=lane, ended=(Ended(run=entry.run, reason="overlap", message=message),))


def _fold(lane: Lane, entry: LaneEntry) -> LaneDecision:
    first = _pending(lane, entry)
    if first is None:
        return _wait(lane, entry)
    before = first.run.folded
    folded = Folded(
        first=first.run.reference_time,
        newest=entry.run.reference_time,
        count=(before.count if before else 1) + 1,
    )
    kept = first.model_copy(update={"run": first.run.model_copy(update={"folded": folded})})
    ended = Ended(
        run=entry.run, reason="coalesced", message=f"Folded into {first.run.run_id}.", stands_in=first.run.run_id
    )
    waiting = tuple(kept if e.run.run_id == kept.run.run_id else e for e in lane.waiting)
    return LaneDecision(lane=lane.model_copy(update={"waiting": waiting}), folded=(kept,), ended=(ended,))


def _try_again(lane: Lane, now: datetime) -> LaneDecision:
    """Retries whose time has come and that found the lane held wait twice as long, up to the longest pause."""
    due = {e.run.run_id for e in lane.waiting if e.try_at is not None and e.try_at <= now}
    waiting = tuple(_back_off(e, now) if e.run.run_id in due else e for e in lane.waiting)
    retried = tuple(e for e in waiting if e.run.run_id in due)
    return LaneDecision(lane=lane.model_copy(update={"waiting": waiting}), retried=retried)


def _back_off(entry: LaneEntry, now: datetime) -> LaneEntry:
    pause = min(FIRST_RETRY * 2**entry.tries, LAST_RETRY)
    return entry.model_copy(update={"tries": entry.tries + 1, "try_at": now + pause})
