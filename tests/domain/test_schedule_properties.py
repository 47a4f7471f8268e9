"""A whole schedule against every order of events: each occurrence of the reference evaluation is dealt with exactly
once, unless it fell into time in which the schedule was kept from firing or was meant otherwise."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain import cron, occurrences, zones
from domain.errors import Conflict
from domain.run import Advanced, Run, RunState
from domain.schedule_state import ScheduleState
from tests.domain.builders import NOON
from tests.domain.life import Life, ended

PATTERNS = st.sampled_from(["*/10 * * * *", "0 * * * *", "5,35 8-20 * * *", "0 0 * * *"])
ENDS = st.sampled_from(
    [
        (RunState.SUCCEEDED, None),
        (RunState.FAILED, "execution_failed"),
        (RunState.NOT_STARTED, "capacity"),
        (RunState.NOT_STARTED, "pointer_null"),
        (RunState.UNKNOWN, "instance_lost"),
    ]
)


class ScheduleMachine(RuleBasedStateMachine):
    @initialize(pattern=PATTERNS, policy=st.sampled_from(["skip", "latest"]))
    def is_created(self, pattern: str, policy: str) -> None:
        self.life = Life(NOON, cron=pattern, missed_policy=policy)
        self.expected: set[datetime] = set()
        """What the reference evaluation has due in all stretches that were closed."""
        self.stretch = NOON
        """Since when the present timing counts."""
        self.counts = True
        """Whether it fires, or is only held up as in an outage."""
        self.reports: list[Advanced] = []
        self.cursor = NOON
        self.number = 0
        self.patterns: dict[str, str] = {}
        """Under which pattern each run was recorded."""

    # What the schedule should have dealt with --------------------------------------------------------

    def close(self) -> None:
        """The present stretch of firing ends now: what it had due and was looked at is to be accounted for."""
        if self.counts:
            definition = self.life.state.definition
            assert definition.cron is not None
            pattern, zone = cron.parse(definition.cron), zones.load(definition.timezone)
            upto = self.life.state.cursor
            found = occurrences.upcoming(pattern, zone, self.stretch, limit=100_000, until=upto)
            self.expected |= {occurrence.at for occurrence in found}

    def begin(self) -> None:
        self.stretch = self.life.state.cursor
        self.counts = self.life.state.condition == "active"

    def accounted(self) -> list[datetime]:
        """Every instant with a disposition: a run of its own, or a place in a summary."""
        dealt: list[datetime] = []
        definition = self.life.state.definition
        for run in self.life.recorded.values():
            if run.scheduled_for is not None:
                dealt.append(run.scheduled_for)
            if run.missed is not None:
                pattern = cron.parse(self.patterns[run.run_id])
                stretch = run.missed
                before = stretch.first - timedelta(seconds=1)
                found = occurrences.upcoming(
                    pattern, zones.load(definition.timezone), before, limit=100_000, until=stretch.last
                )
                assert len(found) == stretch.count
                dealt += [occurrence.at for occurrence in found]
        return dealt

    def acting(self, act: Callable[[], object]) -> None:
        """Does it, and remembers under which pattern a summary was counted."""
        definition = self.life.state.definition
        assert definition.cron is not None
        known = set(self.life.recorded)
        act()
        for run_id in set(self.life.recorded) - known:
            self.patterns[run_id] = definition.cron

    # Events ------------------------------------------------------------------------------------------

    @rule(minutes=st.integers(0, 200), outage=st.booleans())
    def time_passes(self, minutes: int, outage: bool) -> None:
        until = self.life.now + timedelta(minutes=minutes)
        self.acting(lambda: self.life.wake(until) if outage else self.life.live(until))

    @rule(days=st.integers(1, 8))
    def a_long_outage(self, days: int) -> None:
        self.acting(lambda: self.life.wake(self.life.now + timedelta(days=days)))

    @rule()
    def is_paused_and_resumed_later(self) -> None:
        if self.life.state.paused:
            self.acting(self.life.resume)
            self.begin()
        else:
            self.acting(self.life.settle)
            self.close()
            self.acting(self.life.pause)
            self.begin()

    @precondition(lambda self: self.life.state.blocked is not None)
    @rule()
    def is_unblocked(self) -> None:
        self.acting(self.life.unblock)
        self.begin()

    @rule(pattern=PATTERNS)
    def is_edited(self, pattern: str) -> None:
        if pattern == self.life.state.definition.cron:
            return
        self.acting(self.life.settle)
        self.close()
        self.acting(lambda: self.life.edit(cron=pattern))
        self.begin()

    @rule(priority=st.integers(1, 9), minutes=st.integers(0, 2000))
    def a_policy_is_edited(self, priority: int, minutes: int) -> None:
        self.life.now += timedelta(minutes=minutes)
        self.acting(lambda: self.life.edit(priority=priority))

    @rule(minutes=st.integers(0, 2000))
    def is_replanned(self, minutes: int) -> None:
        """Perhaps before it has looked at what fell due meanwhile."""
        self.life.now += timedelta(minutes=minutes)
        self.acting(self.life.replan)

    @rule(active=st.booleans())
    def its_workspace_is_switched(self, active: bool) -> None:
        self.acting(lambda: self.life.set_active(active))

    @rule()
    def is_carried_over(self) -> None:
        """As by a continue-as-new: through what is written and read again."""
        self.life.state = ScheduleState.model_validate_json(self.life.state.model_dump_json())

    @rule()
    def is_run_now(self) -> None:
        self.number += 1
        with suppress(Conflict):
            self.acting(lambda: self.life.run_now(f"{self.number}"))

    @precondition(lambda self: self.life.state.open_runs)
    @rule(data=st.data(), end=ENDS)
    def a_run_ends(self, data: st.DataObject, end: tuple[RunState, str | None]) -> None:
        run: Run = data.draw(st.sampled_from([open_run.run for open_run in self.life.state.open_runs]))
        change = ended(run, end[0], self.life.now, end[1])
        if change.run.blocks and self.life.state.condition == "active":
            self.acting(self.life.settle)
            self.close()
        fired = self.life.state.condition == "active"
        self.acting(lambda: self.life.report(change))
        if fired and self.life.state.condition != "active":
            self.begin()
        self.reports.append(change)

    @precondition(lambda self: self.reports)
    @rule(data=st.data())
    def a_report_comes_again(self, data: st.DataObject) -> None:
        before = self.life.state
        self.life.report(data.draw(st.sampled_from(self.reports)))
        assert self.life.state.blocked == before.blocked
        assert self.life.state.open_runs == before.open_runs

    # Always ------------------------------------------------------------------------------------------

    @invariant()
    def each_occurrence_is_dealt_with_exactly_once(self) -> None:
        definition = self.life.state.definition
        assert definition.cron is not None
        dealt = self.accounted()
        assert len(dealt) == len(set(dealt))
        due = set(self.expected)
        if self.counts:
            pattern, zone = cron.parse(definition.cron), zones.load(definition.timezone)
            found = occurrences.upcoming(pattern, zone, self.stretch, limit=100_000, until=self.life.state.cursor)
            due |= {occurrence.at for occurrence in found}
        assert set(dealt) == due

    @invariant()
    def the_cursor_never_goes_back(self) -> None:
        assert self.life.state.cursor >= self.cursor
        self.cursor = self.life.state.cursor

    @invariant()
    def while_it_fires_nothing_due_is_left_behind(self) -> None:
        if self.life.state.fires:
            assert self.life.next is not None
            assert self.life.next > self.life.now

    @invariant()
    def it_was_sent_to_its_lane_once(self) -> None:
        sent = [run.run_id for run in self.life.requested]
        assert len(sent) == len(set(sent))


TestSchedule = ScheduleMachine.TestCase
TestSchedule.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
