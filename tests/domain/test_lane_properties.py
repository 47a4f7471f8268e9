"""The lane against every order of events: never two holders, nothing lost, nothing twice, never a second pending
occurrence of one schedule."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain.lane import Lane, LaneDecision, LaneEntry, arrive, dropped, lost, released, tick, withdrawn
from domain.run import FINAL_STATES, Origin, Run, RunState
from domain.schedule import CollisionPolicy
from tests.domain.builders import NOON, entry

SCHEDULES = st.sampled_from(["a", "b", "c"])
POLICY = {"a": CollisionPolicy.QUEUE_LATEST, "b": CollisionPolicy.RETRY, "c": CollisionPolicy.COALESCE}


class LaneMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane()
        self.now: datetime = NOON
        self.number = 0
        self.sent: set[str] = set()
        self.started: list[str] = []
        self.last: dict[str, Run] = {}

    def take(self, decision: LaneDecision) -> None:
        before = self.lane.holder
        self.lane = decision.lane
        for change in decision.changes:
            known = self.last.get(change.run.run_id)
            assert known is None or known.state not in FINAL_STATES
            assert known is None or change.run.seq > known.seq
            self.last[change.run.run_id] = change.run
        if decision.started is not None:
            assert self.lane.holder == decision.started
            assert before is None or before.run.run_id != decision.started.run.run_id
            self.started.append(decision.started.run.run_id)

    def arriving(self, schedule: str, policy: CollisionPolicy, priority: int, **changes: object) -> LaneEntry:
        self.number += 1
        made = entry(schedule, self.now, policy, priority, start_by=self.now + timedelta(minutes=30))
        run = made.run.model_copy(update={"run_id": f"{schedule}-{self.number}", **changes})
        self.sent.add(run.run_id)
        return made.model_copy(update={"run": run})

    @rule(schedule=SCHEDULES, priority=st.integers(1, 3), skips=st.booleans())
    def falls_due(self, schedule: str, priority: int, skips: bool) -> None:
        policy = CollisionPolicy.SKIP if skips else POLICY[schedule]
        self.take(arrive(self.lane, self.arriving(schedule, policy, priority), self.now))

    @rule(schedule=SCHEDULES)
    def is_run_now(self, schedule: str) -> None:
        asked = self.arriving(schedule, POLICY[schedule], 5, origin=Origin.RUN_NOW)
        self.take(arrive(self.lane, asked, self.now))

    @precondition(lambda self: self.lane.waiting)
    @rule(data=st.data())
    def is_sent_twice(self, data: st.DataObject) -> None:
        again = data.draw(st.sampled_from(self.lane.waiting))
        assert arrive(self.lane, again, self.now) == LaneDecision(lane=self.lane)

    @precondition(lambda self: self.lane.tombstones)
    @rule(data=st.data())
    def comes_again_after_it_ended(self, data: st.DataObject) -> None:
        stone = data.draw(st.sampled_from(self.lane.tombstones))
        again = entry(str(stone.schedule_id), self.now, run_id=stone.run_id)
        assert arrive(self.lane, again, self.now) == LaneDecision(lane=self.lane)

    @precondition(lambda self: self.lane.holder is not None)
    @rule()
    def ends(self) -> None:
        assert self.lane.holder is not None
        self.take(released(self.lane, self.lane.holder.run.run_id, self.now))

    @precondition(lambda self: self.lane.holder is not None and self.lane.in_doubt_until is None)
    @rule()
    def is_lost(self) -> None:
        self.take(lost(self.lane, self.now))
        assert self.lane.holder is not None

    @rule(seconds=st.integers(0, 900))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.take(tick(self.lane, self.now))

    @rule(schedule=SCHEDULES, only_occurrences=st.booleans())
    def is_withdrawn(self, schedule: str, only_occurrences: bool) -> None:
        decision = withdrawn(self.lane, schedule, self.now, "schedule_paused", "", only_occurrences=only_occurrences)
        assert decision.lane.holder == self.lane.holder
        self.take(decision)

    @precondition(lambda self: self.lane.waiting)
    @rule(data=st.data())
    def is_cancelled_while_waiting(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.lane.waiting))
        self.take(dropped(self.lane, one.run.run_id, self.now, "somebody"))

    @invariant()
    def nothing_is_lost_and_nothing_starts_twice(self) -> None:
        waiting = {waiting.run.run_id for waiting in self.lane.waiting}
        ended = {run.run_id for run in self.last.values() if run.state is RunState.SKIPPED}
        assert len(self.started) == len(set(self.started))
        assert waiting | ended | set(self.started) == self.sent
        assert not waiting & ended
        assert not waiting & set(self.started)
        assert not ended & set(self.started)

    @invariant()
    def a_schedule_has_at_most_one_pending_occurrence(self) -> None:
        pending = [w.run.schedule_id for w in self.lane.waiting if w.is_occurrence]
        assert len(pending) == len(set(pending))

    @invariant()
    def nobody_waits_beside_a_free_lane(self) -> None:
        assert self.lane.holder is not None or not self.lane.waiting

    @invariant()
    def what_was_folded_is_counted(self) -> None:
        for run in self.last.values():
            if run.reason == "coalesced":
                assert run.stands_in is not None
                first = self.last[run.stands_in]
                assert first.folded is not None
                assert first.folded.count >= 2


TestLane = LaneMachine.TestCase
TestLane.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
