"""Graphs, calendars, ends, restarts and faults of the post at random, against a slow answer worked out beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.dependency import TerminalStatus, judge
from domain.run import FINAL_STATES, Run, RunState, WaitStatus
from domain.schedule import ScheduleDefinition
from domain.schedule_dependent import ASK_AGAIN
from domain.schedule_mail import AskParent, Letter, TellDependent
from tests.domain.builders import definition
from tests.domain.fan_in_oracle import FOREVER, fates
from tests.domain.town import Town, prompt

PATTERNS = ("0 6 * * *", "30 23 * * *", "0 6,18 * * *", "0 9 * * 1-5", "30 2 * * *", "20 */8 * * *", "15 0 * * *")
ZONES = ("UTC", "America/New_York", "Asia/Tokyo", "Europe/Berlin")
BEGINNINGS = (
    datetime(2027, 3, 12, 3, tzinfo=UTC),
    datetime(2027, 10, 30, 3, tzinfo=UTC),
    datetime(2027, 11, 5, tzinfo=UTC),
)
DAYS = timedelta(days=5)
BEYOND = timedelta(days=4)
"""How far the simulation goes on, so that what is compared has ended."""

Graph = dict[str, ScheduleDefinition]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    graph: Graph = {"s0": _root(draw), "s1": _root(draw)}
    for number in range(2, draw(st.integers(3, 6))):
        parents = draw(st.lists(st.sampled_from(sorted(graph)), min_size=1, max_size=3, unique=True))
        graph[f"s{number}"] = definition(
            name=f"s{number}",
            cron=draw(st.sampled_from((*PATTERNS, None))),
            timezone=draw(st.sampled_from(ZONES)),
            after_schedule_ids=tuple(parents),
            after_terminal_status=draw(st.sampled_from(TerminalStatus)),
            after_delay_minutes=draw(st.sampled_from((0, 0, 31, 187))),
            dependency_deadline=draw(st.sampled_from((None, None, "23:45", "04:00+1"))),
            max_start_delay_minutes=7 * 1440,
        )
    return graph


def _root(draw: st.DrawFn) -> ScheduleDefinition:
    return definition(cron=draw(st.sampled_from(PATTERNS)), timezone=draw(st.sampled_from(ZONES)))


def ends_of(schedule_id: str, due: datetime, seed: int, graph: Graph) -> tuple[RunState, timedelta, timedelta | None]:
    """How the run of an occurrence ends, how long it takes, and when the late truth of an unknown end comes: the same
    whenever it is asked. Odd seconds, so that nothing ends at the moment at which something is due."""
    digest = hashlib.sha256(f"{schedule_id} {due.isoformat()} {seed}".encode()).digest()
    lasts = timedelta(minutes=digest[0] % 240, seconds=7 + 2 * (int(schedule_id[1:]) + 10 * (digest[3] % 2)))
    state = (RunState.SUCCEEDED, RunState.SUCCEEDED, RunState.SUCCEEDED, RunState.FAILED, RunState.UNKNOWN)[
        digest[1] % 5
    ]
    if state is RunState.UNKNOWN and graph[schedule_id].parents:
        state = RunState.CANCELLED
    truth = timedelta(hours=digest[2] % 20, seconds=1) if state is RunState.UNKNOWN and digest[2] < 200 else None
    return state, lasts, truth


def simulated(graph: Graph, began: datetime, seed: int, post: Callable[[Letter], list[timedelta]] = prompt) -> Town:
    random = Random(seed)

    def script(run: Run) -> tuple[RunState, timedelta, timedelta | None]:
        return ends_of(str(run.schedule_id), run.scheduled_for or run.reference_time, seed, graph)

    town = Town(began, script, post, restarts=lambda: random.random() < 0.05)
    for schedule_id, each in graph.items():
        town.create(schedule_id, each)
    town.let_pass(began + DAYS + BEYOND)
    return town


def _chain() -> Graph:
    """A newer date gives way to an older one that still waits, and what depends on the older one goes on waiting."""
    graph: Graph = {
        "s0": definition(cron="20 */8 * * *", timezone="Europe/Berlin"),
        "s1": definition(cron="0 6 * * *", timezone="UTC"),
        "s2": definition(name="s2", cron=None, timezone="UTC", after_schedule_ids=("s0", "s1")),
        "s3": definition(name="s3", cron="0 6 * * *", timezone="UTC", after_schedule_ids=("s2",)),
    }
    return graph


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), began=st.sampled_from(BEGINNINGS), seed=st.integers(0, 2**32))
@example(graph=_chain(), began=BEGINNINGS[0], seed=0)
def test_every_occurrence_ends_as_worked_out_beforehand(graph: Graph, began: datetime, seed: int) -> None:
    def ends(schedule_id: str, due: datetime, starts: datetime) -> tuple[RunState, datetime]:
        state, lasts, truth = ends_of(schedule_id, due, seed, graph)
        if state is not RunState.UNKNOWN:
            return state, starts + lasts
        return (RunState.SUCCEEDED, starts + lasts + truth) if truth is not None else (state, FOREVER)

    expected = fates(graph, began, began + DAYS + BEYOND, ends)
    town = simulated(graph, began, seed)
    for schedule_id, worked_out in expected.items():
        if not graph[schedule_id].parents:
            continue
        early = [fate for fate in worked_out if fate.decided <= began + DAYS]
        found = [run for run in town.runs_of(schedule_id) if town.decided.get(run.run_id, FOREVER) <= began + DAYS]
        found.sort(key=lambda run: (town.decided[run.run_id], run.state))
        early.sort(key=lambda fate: (fate.decided, fate.state))
        assert [(town.decided[run.run_id], run.state) for run in found] == [(f.decided, f.state) for f in early]
        assert all(run.reason in fate.reasons for run, fate in zip(found, early, strict=True))
        assert {run.scheduled_for for run in found if run.reason is None} == {
            fate.due for fate in early if None in fate.reasons
        }
        assert all(len(town.started.get(run.run_id, ())) == (run.reason is None) for run in found)


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), began=st.sampled_from(BEGINNINGS), seed=st.integers(0, 2**32))
def test_no_fault_of_the_post_releases_wrongly_twice_or_never(graph: Graph, began: datetime, seed: int) -> None:
    """Questions and answers are lost, doubled and overtaken; every other letter is doubled and overtaken."""
    random, lost = Random(seed), 0

    def post(letter: Letter) -> list[timedelta]:
        nonlocal lost
        may_be_lost = isinstance(letter, AskParent | TellDependent) and lost < 6
        if may_be_lost and random.random() < 0.2:
            lost += 1
            return []
        return [timedelta(seconds=random.choice((0, 1, 600))) for _ in range(random.choice((1, 1, 2)))]

    town = simulated(graph, began, seed, post)
    slack = 8 * ASK_AGAIN + timedelta(hours=2)
    for schedule_id, each in graph.items():
        for run in town.runs_of(schedule_id) if each.parents else ():
            decided = town.decided.get(run.run_id)
            assert len(town.started.get(run.run_id, ())) <= 1
            if decided is None or decided > began + DAYS:
                continue
            _check_matches(town, graph, run)
            ended = [parent.ended_at for parent in run.waits_for if parent.ended_at is not None]
            holds = any(parent.run_state is RunState.UNKNOWN for parent in run.waits_for)
            if run.reason == "dependency_deadline" and not holds and len(ended) == len(run.waits_for):
                last = max(ended) + timedelta(minutes=each.after_delay_minutes)
                assert last + slack >= decided


def _check_matches(town: Town, graph: Graph, run: Run) -> None:
    """A released run had each parent's match, by the rule and by the parents' own records, end as it demands."""
    if run.reason is not None:
        return
    started = town.started[run.run_id][0]
    dates = {reading.date() for reading in run.nominal}
    each = graph[str(run.schedule_id)]
    for parent in run.waits_for:
        theirs = [r for r in town.runs_of(parent.schedule_id) if dates & {n.date() for n in r.nominal}]
        by_rule = _last_at_or_before(theirs, run, each)
        assert parent.status is WaitStatus.ENDED
        assert parent.occurrence == by_rule.scheduled_for
        assert by_rule.state in FINAL_STATES
        assert judge(parent, each.after_terminal_status) == "releases"
        assert parent.ended_at is not None
        assert parent.ended_at + timedelta(minutes=each.after_delay_minutes) <= started


def _last_at_or_before(theirs: list[Run], run: Run, each: ScheduleDefinition) -> Run:
    if each.cron is None:
        same = [r for r in theirs if r.scheduled_for == run.scheduled_for]
        return same[0] if len(each.parents) == 1 else theirs[-1]
    assert run.scheduled_for is not None
    before = [r for r in theirs if r.scheduled_for is not None and r.scheduled_for <= run.scheduled_for]
    return before[-1] if before else theirs[0]
