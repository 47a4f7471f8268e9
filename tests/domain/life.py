"""One schedule on a clock that the test sets: it wakes, looks around with the real planning function, and decides,
as its workflow does. What it tells the outside is collected."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from domain import planning, schedule_acts, schedule_due, schedule_lane, schedule_runs, schedule_state
from domain.errors import Invalid
from domain.events import RunChanged
from domain.planning import LookAround
from domain.run import Advanced, Run, RunState, TrailRow, advance, hand_over, seize
from domain.schedule import ScheduleDefinition
from domain.schedule_mail import RequestLane
from domain.schedule_state import ScheduleState
from tests.domain.builders import definition

TARGET = "pipeline:finance/close"
BY = "somebody"


class Life:
    def __init__(self, now: datetime, **changes: Any) -> None:
        self.now = now
        self.state = schedule_acts.create("default", "s1", definition(**changes), TARGET, BY, now)
        self.recorded: dict[str, Run] = {}
        """Every run of which the read model heard, as it was last told."""
        self.requested: list[Run] = []
        """The runs that were sent to a lane, in order."""
        self.offered_again: list[Run] = []
        self.dropped: list[str] = []
        """The reasons for which lanes were told to drop what waits there."""
        self.trail: list[TrailRow] = []
        self.lookups: list[LookAround] = []
        self.settle()

    # Time ------------------------------------------------------------------------------------------

    def wake(self, now: datetime) -> Life:
        """The clock is at `now`, and nobody looked since it last woke: an outage, if that is long ago."""
        self.now = now
        self.settle()
        return self

    def live(self, until: datetime) -> Life:
        """Time passes with the worker up: it wakes whenever something is planned."""
        while (planned := self.state.next_planned) is not None and planned.at <= until:
            self.wake(planned.at)
        return self.wake(until)

    def settle(self) -> None:
        for _ in range(20):
            before = self.state
            self._decide()
            self._deliver()
            if self.state == before:
                return
        raise AssertionError("it never comes to rest")

    def _decide(self) -> None:
        self.state = schedule_lane.offered_again(schedule_lane.gate_tick(self.state, self.now), self.now)
        request = schedule_due.look_around(self.state, self.now)
        if request is None:
            backlog = schedule_due.planned_backlog(self.state, self.now) if self.state.fires else None
            if backlog is not None:
                self.state = schedule_due.due(self.state, backlog, self.now)
            return
        self.lookups.append(request)
        try:
            found = planning.look_around(request)
        except Invalid as error:
            self.state = schedule_due.not_accepted(self.state, error.message, self.now)
        else:
            self.state = schedule_due.seen(self.state, found, self.now)

    def _deliver(self) -> None:
        for event in self.state.outbox:
            if isinstance(event, RunChanged):
                self.trail.append(event.change.trail)
                known = self.recorded.get(event.change.run.run_id)
                if known is None or known.seq < event.change.run.seq:
                    self.recorded[event.change.run.run_id] = event.change.run
        for letter in self.state.mail:
            if isinstance(letter, RequestLane):
                (self.offered_again if letter.again else self.requested).append(letter.entry.run)
            elif letter.kind == "withdraw":
                self.dropped.append(letter.reason)
        self.state = self.state.but(outbox=(), mail=(), letters=())

    # Acts ------------------------------------------------------------------------------------------

    def take(self, state: ScheduleState) -> Life:
        self.state = state
        self.settle()
        return self

    def pause(self) -> Life:
        return self.take(schedule_acts.pause(self.state, BY, self.now))

    def resume(self) -> Life:
        return self.take(schedule_acts.resume(self.state, BY, self.now))

    def unblock(self) -> Life:
        return self.take(schedule_acts.unblock(self.state, BY, self.now))

    def replan(self) -> Life:
        return self.take(schedule_acts.replan(self.state, self.now))

    def set_active(self, active: bool) -> Life:
        return self.take(schedule_acts.set_workspace_active(self.state, active))

    def edit(self, target: str = TARGET, **changes: Any) -> Life:
        revised = ScheduleDefinition.model_validate(self.state.definition.model_dump() | changes)
        return self.take(schedule_acts.revise(self.state, revised, target, BY, self.now))

    def run_now(self, key: str) -> Run:
        schedule_acts.check_run_now(self.state, key, "test")
        state, run = schedule_acts.run_now(self.state, key, BY, self.now)
        self.take(state)
        return run

    # Runs ------------------------------------------------------------------------------------------

    def ends(self, run: Run, state: RunState = RunState.SUCCEEDED, reason: str | None = None) -> Life:
        """The run's own workflow reports its end."""
        return self.report(ended(run, state, self.now, reason))

    def waits_in_its_lane(self, run: Run) -> Life:
        return self.report(advance(hand_over(run), RunState.WAITING, self.now, kind="lane_waiting", reason="lane"))

    def report(self, *changes: Advanced) -> Life:
        state = schedule_runs.run_reported(self.state, changes, self.now)
        return self.take(schedule_state.announced(state))

    # Looking ---------------------------------------------------------------------------------------

    @property
    def occurrences(self) -> list[tuple[str, str]]:
        """The occurrences that were to run, as clock time and origin, in order."""
        runs = [run for run in self.recorded.values() if run.scheduled_for]
        return [(f"{run.scheduled_for:%H:%M}", run.origin) for run in sorted(runs, key=lambda r: r.reference_time)]

    @property
    def summaries(self) -> list[tuple[str, str, int]]:
        """The rows of missed occurrences: first, last, count."""
        rows = [run.missed for run in self.recorded.values() if run.missed is not None]
        return [(f"{row.first:%d %H:%M}", f"{row.last:%d %H:%M}", row.count) for row in rows]

    @property
    def next(self) -> datetime | None:
        planned = self.state.next_planned
        return planned.at if planned else None

    @property
    def only(self) -> Run:
        (run,) = (run for run in self.recorded.values() if run.scheduled_for)
        return run


def ended(run: Run, state: RunState, now: datetime, reason: str | None = None) -> Advanced:
    started = seize(run)
    if state not in (RunState.SKIPPED, RunState.NOT_STARTED, RunState.UNKNOWN):
        started = started.model_copy(update={"state": RunState.RUNNING})
    return advance(started, state, now, kind="finished", reason=reason)
