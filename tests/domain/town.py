"""Schedules that exchange letters through a post that may lose, double and delay them; and a clock to move on.

Everything but the workflow shell is the product's own: the states, what they decide and what they look up. A lane is
never held, and a run lasts and ends as its script says.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from domain import (
    parent_matching,
    planning,
    schedule_acts,
    schedule_dependent,
    schedule_due,
    schedule_kin,
    schedule_runs,
)
from domain.dependency import Answer
from domain.events import RunChanged
from domain.run import Advanced, Run, RunState, advance
from domain.schedule import ScheduleDefinition
from domain.schedule_mail import AnnounceDue, AskParent, Letter, ParentDue, RequestLane, Subscribe, TellDependent
from domain.schedule_state import ScheduleState

Script = Callable[[Run], tuple[RunState, timedelta, timedelta | None]]
"""How a run ends and how long it takes; for an unknown end, when the late truth comes that it succeeded."""


class Post(Protocol):
    def __call__(self, letter: Letter, /) -> list[timedelta]:
        """When the letter arrives, and when again; never, where it is lost."""


def prompt(letter: Letter) -> list[timedelta]:
    return [timedelta()]


@dataclass
class Town:
    now: datetime
    script: Script
    post: Post = prompt
    restarts: Callable[[], bool] = lambda: False
    states: dict[str, ScheduleState] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    started: dict[str, list[datetime]] = field(default_factory=dict)
    decided: dict[str, datetime] = field(default_factory=dict)
    """When a run that waited was released or ended."""
    _answers: dict[str, list[Answer]] = field(default_factory=dict)
    _dues: dict[str, list[ParentDue]] = field(default_factory=dict)
    _events: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def create(self, schedule_id: str, definition: ScheduleDefinition) -> None:
        state = schedule_acts.create("w", schedule_id, definition, f"t:{schedule_id}", "test", self.now)
        self.states[schedule_id] = state
        self._answers[schedule_id], self._dues[schedule_id] = [], []
        self.settle(schedule_id)

    def let_pass(self, until: datetime) -> None:
        while True:
            due = min((wake for wake in map(self._wake, self.states) if wake is not None), default=until)
            upcoming = min(due, self._events[0][0] if self._events else until)
            if upcoming > until:
                break
            woken = [each for each in self.states if (wake := self._wake(each)) is not None and wake <= upcoming]
            self.now = max(self.now, upcoming)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            for schedule_id in woken:
                self.settle(schedule_id)
            if upcoming == until and not self._pending(until):
                break
        self.now = until

    def act(self, schedule_id: str, change: Callable[[ScheduleState], ScheduleState]) -> None:
        self.states[schedule_id] = change(self.states[schedule_id])
        self.settle(schedule_id)

    def settle(self, schedule_id: str) -> None:
        """What the workflow does whenever it wakes."""
        while True:
            before = self.states[schedule_id]
            self._hear(schedule_id)
            self._due(schedule_id)
            self._kin(schedule_id)
            self._deliver(schedule_id)
            if self.restarts():
                text = self.states[schedule_id].model_dump_json()
                self.states[schedule_id] = ScheduleState.model_validate_json(text)
            if self.states[schedule_id] == before:
                return

    def runs_of(self, schedule_id: str) -> list[Run]:
        return sorted(
            (run for run in self.runs.values() if run.schedule_id == schedule_id and run.missed is None),
            key=lambda run: (run.scheduled_for or run.reference_time, run.run_id),
        )

    def _pending(self, until: datetime) -> bool:
        wakes = [wake for wake in map(self._wake, self.states) if wake is not None]
        return any(wake <= until for wake in wakes) or bool(self._events and self._events[0][0] <= until)

    def _wake(self, schedule_id: str) -> datetime | None:
        state = self.states[schedule_id]
        due = state.next_planned
        times = (due.at if due else None, schedule_kin.next_wake(state, self.now))
        return min((at for at in times if at is not None), default=None)

    def _hear(self, schedule_id: str) -> None:
        answers, self._answers[schedule_id] = tuple(self._answers[schedule_id]), []
        self.states[schedule_id] = schedule_kin.heard(self.states[schedule_id], answers, self.now)

    def _due(self, schedule_id: str) -> None:
        state = self.states[schedule_id]
        request = schedule_due.look_around(state, self.now)
        if request is not None:
            self.states[schedule_id] = schedule_due.seen(state, planning.look_around(request), self.now)
            return
        backlog = schedule_due.planned_backlog(state, self.now) if state.fires else None
        if backlog is not None:
            self.states[schedule_id] = schedule_due.due(state, backlog, self.now)

    def _kin(self, schedule_id: str) -> None:
        state = self.states[schedule_id]
        dues, self._dues[schedule_id] = tuple(self._dues[schedule_id]), []
        ends = planning.wait_ends(schedule_kin.wait_ends(state, dues)).ends
        for due, end in zip(dues, ends, strict=True):
            state = schedule_dependent.driven(state, due, self.now, end)
        lookup = schedule_kin.lookup(state, self.now)
        if lookup is not None:
            definitions = {each: other.definition for each, other in self.states.items()}
            state = schedule_kin.matched(state, parent_matching.look_up(lookup, (), definitions), self.now)
        self.states[schedule_id] = schedule_kin.settled(state, self.now)

    def _deliver(self, schedule_id: str) -> None:
        state = self.states[schedule_id]
        self.states[schedule_id] = state.but(outbox=(), mail=(), letters=())
        for event in state.outbox:
            if isinstance(event, RunChanged):
                self._noted(event.change.run)
        for mail in state.mail:
            if isinstance(mail, RequestLane):
                self._start(mail.entry.run)
        for letter in state.letters:
            for late in self.post(letter):
                self._at(self.now + late, lambda letter=letter: self._arrive(letter))  # type: ignore[misc]

    def _noted(self, run: Run) -> None:
        known = self.runs.get(run.run_id)
        if known is None or known.seq < run.seq:
            self.runs[run.run_id] = run
            waited = known is not None and known.state is RunState.WAITING
            if waited and run.state is not RunState.WAITING:
                self.decided.setdefault(run.run_id, self.now)

    def _arrive(self, letter: Letter) -> None:
        receiver = letter.schedule_id
        match letter:
            case AskParent(question=question):
                self.states[receiver] = schedule_kin.asked(self.states[receiver], question)
            case TellDependent(answer=answer):
                self._answers[receiver].append(answer)
            case Subscribe():
                self.states[receiver] = schedule_kin.subscribed(self.states[receiver], letter)
            case AnnounceDue(due=due):
                self._dues[receiver].append(due)
        self.settle(receiver)

    def _start(self, run: Run) -> None:
        self.started.setdefault(run.run_id, []).append(self.now)
        ends, lasts, truth = self.script(run)
        begun = advance(advance(run, RunState.STARTING, self.now).run, RunState.RUNNING, self.now)
        ended = advance(begun.run, ends, self.now + lasts)
        self._report(timedelta(), begun)
        self._report(lasts, ended)
        if truth is not None:
            self._report(lasts + truth, advance(ended.run, RunState.SUCCEEDED, self.now + lasts + truth))

    def _report(self, late: timedelta, change: Advanced) -> None:
        def arrive() -> None:
            schedule_id = str(change.run.schedule_id)
            state = schedule_runs.run_reported(self.states[schedule_id], (change,), self.now)
            self.states[schedule_id] = schedule_acts.unblock(state, "test", self.now)
            self.settle(schedule_id)

        self._at(self.now + late, arrive)

    def _at(self, when: datetime, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what))
