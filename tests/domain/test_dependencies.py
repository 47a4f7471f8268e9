"""Fan-in case by case: schedules of a small town, their occurrences and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain import parent_matching, schedule_acts, schedule_kin, schedule_parent
from domain.dependency import Answer, Question
from domain.run import ParentWait, Run, RunState, WaitStatus
from domain.schedule import ScheduleDefinition
from domain.schedule_mail import AskParent, Letter, TellDependent
from domain.schedule_state import ScheduleState
from tests.domain.builders import at, definition, run
from tests.domain.town import Town

LASTS = timedelta(minutes=20)

Ending = tuple[RunState, timedelta, timedelta | None]


class Script:
    """Every run succeeds after twenty minutes, but for those that a test names by the beginning of their ids."""

    def __init__(self) -> None:
        self.others: dict[str, Ending] = {}

    def __call__(self, run: Run) -> Ending:
        for prefix, ending in self.others.items():
            if run.run_id.startswith(prefix):
                return ending
        return RunState.SUCCEEDED, LASTS, None


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def town(script: Script) -> Town:
    return Town(at("00:00"), script)


def only(town: Town, schedule_id: str) -> Run:
    (found,) = town.runs_of(schedule_id)
    return found


def after(*parents: str, **changes: object) -> ScheduleDefinition:
    return definition(after_schedule_ids=parents, **changes)


def test_a_parent_still_running_holds_and_yesterdays_success_releases_nothing(town: Town, script: Script) -> None:
    """DP-02."""
    script.others["close-20261202"] = (RunState.SUCCEEDED, timedelta(hours=3), None)
    town.create("close", definition(cron="0 6 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("08:00", day=2))
    first, second = town.runs_of("pulse")
    assert first.state is RunState.SUCCEEDED
    assert (second.state, second.reason) == (RunState.WAITING, "dependency")
    assert second.waits_for[0].status is WaitStatus.OPEN
    town.let_pass(at("09:30", day=2))
    assert town.started[second.run_id] == [at("09:00", day=2)]


def test_the_parent_of_the_same_evening_is_waited_for_all_day(town: Town, script: Script) -> None:
    """DP-05: it ends after the date, so the wait ends with the date unless a deadline reaches further."""
    script.others["late"] = (RunState.SUCCEEDED, timedelta(minutes=50), None)
    town.create("late", definition(cron="30 23 * * *"))
    town.create("plain", after("late", cron="30 0 * * *"))
    town.create("patient", after("late", cron="30 0 * * *", dependency_deadline="01:00+1"))
    town.let_pass(at("00:25", day=2))
    assert only(town, "plain").reason == "dependency_deadline"
    assert town.started[only(town, "patient").run_id] == [at("00:20", day=2)]


@pytest.mark.parametrize(("truth", "state"), [(RunState.SUCCEEDED, RunState.SUCCEEDED), (None, RunState.SKIPPED)])
def test_unknown_holds_until_the_late_truth(
    town: Town, script: Script, truth: RunState | None, state: RunState
) -> None:
    """DP-11."""
    script.others["close"] = (RunState.UNKNOWN, LASTS, timedelta(hours=5) if truth else None)
    town.create("close", definition(cron="0 6 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *", after_terminal_status="any_terminal"))
    town.let_pass(at("10:00"))
    waiting = only(town, "pulse")
    assert (waiting.state, waiting.waits_for[0].run_state) == (RunState.WAITING, RunState.UNKNOWN)
    town.let_pass(at("06:00", day=2))
    assert town.runs["pulse-20261201T070000Z"].state is state


def test_a_run_by_hand_is_no_occurrence(town: Town) -> None:
    """DP-14 and DP-15: one by hand releases nothing, and one for another date changes nothing."""
    town.create("a", definition(cron="0 9 * * *"))
    town.create("b", definition(cron="0 6 * * *"))
    town.create("c", after("a", "b", cron="0 7 * * *"))
    town.let_pass(at("07:30"))
    town.act("a", lambda state: schedule_acts.run_now(state, "k", "test", town.now)[0])
    town.let_pass(at("08:30"))
    assert only(town, "c").state is RunState.WAITING
    town.let_pass(at("09:30"))
    assert town.started[only(town, "c").run_id] == [at("09:20")]


def test_a_failed_hour_is_not_healed_by_a_later_one(town: Town, script: Script) -> None:
    """DP-22: the match is the last hour at or before, and only that counts."""
    script.others["hourly-20261201T06"] = (RunState.FAILED, LASTS, None)
    town.create("hourly", definition(cron="0 5,6,8 * * *"))
    town.create("pulse", after("hourly", cron="30 7 * * *"))
    town.let_pass(at("10:00"))
    failed = only(town, "pulse")
    assert (failed.state, failed.reason) == (RunState.SKIPPED, "parent_failed")
    assert "hourly-20261201T060000Z" in (failed.message or "")


@pytest.mark.parametrize(
    ("ending", "completed", "any_terminal"),
    [
        (RunState.SUCCEEDED, RunState.SUCCEEDED, RunState.SUCCEEDED),
        (RunState.FAILED, RunState.SKIPPED, RunState.SUCCEEDED),
        (RunState.CANCELLED, RunState.SKIPPED, RunState.SUCCEEDED),
        (RunState.ABORTED, RunState.SKIPPED, RunState.SUCCEEDED),
    ],
)
def test_the_terminal_policy(
    town: Town, script: Script, ending: RunState, completed: RunState, any_terminal: RunState
) -> None:
    script.others["close"] = (ending, LASTS, None)
    town.create("close", definition(cron="0 6 * * *"))
    town.create("strict", after("close", cron="0 7 * * *"))
    town.create("lenient", after("close", cron="0 7 * * *", after_terminal_status="any_terminal"))
    town.let_pass(at("12:00"))
    assert only(town, "strict").state is completed
    assert only(town, "lenient").state is any_terminal


def test_dates_are_each_schedule_s_own_and_are_counted_in_calendar_days() -> None:
    """DP-23, over the change of 14 March 2027: the two local dates are compared, not instants 24 hours apart."""
    town = Town(datetime(2027, 3, 10, 12, tzinfo=UTC), Script())
    town.create("tokyo", definition(cron="0 1 * * *", timezone="Asia/Tokyo"))
    town.create("york", after("tokyo", cron="30 2 * * *", timezone="America/New_York"))
    town.let_pass(datetime(2027, 3, 17, tzinfo=UTC))
    assert len(town.runs_of("york")) == 6
    for found in town.runs_of("york"):
        assert found.state is RunState.SUCCEEDED
        (parent,) = found.waits_for
        assert parent.nominal[0].date() == found.nominal[0].date()
    assert town.runs_of("york")[3].scheduled_for == datetime(2027, 3, 14, 7, tzinfo=UTC)


def test_an_occurrence_of_two_dates_satisfies_dependents_of_either() -> None:
    """Two nominal times that a skipped midnight puts on one instant: Sao Paulo skipped 00:00 to 01:00."""
    state = ScheduleState.model_validate(_state(definition(cron="0 9 * * *")))
    nominal = (datetime(2026, 12, 1, 23, 30), datetime(2026, 12, 2, 0, 15))  # noqa: DTZ001
    ended = run("s1", at("12:00"), state=RunState.SUCCEEDED)
    parenthood = schedule_parent.recorded(state.parenthood, at("12:00"), nominal, ended)
    for day in (1, 2):
        asked = Question(
            dependent_id="d",
            run_id=f"r{day}",
            dates=(at("00:00", day).date(),),
            instant=at("13:00"),
            until=at("23:00", 3),
        )
        parenthood = schedule_parent.asked(parenthood, asked)
    after_it = state.but(parenthood=parenthood, cursor=at("13:00", 3))
    letters = _answered(after_it, at("13:00"))
    assert [letter.answer.parent.run_state for letter in letters] == [RunState.SUCCEEDED] * 2


def test_driven_by_one_in_a_chain_each_follows_the_very_occurrence(town: Town, script: Script) -> None:
    script.others["a-20261201T06"] = (RunState.SUCCEEDED, timedelta(hours=15), None)
    town.create("a", definition(cron="0 6,18 * * *", collision_policy="queue_latest"))
    town.create("b", after("a", cron=None, collision_policy="skip"))
    town.create("c", after("b", cron=None))
    town.let_pass(at("23:00"))
    assert [(r.scheduled_for, r.state, r.reason) for r in town.runs_of("b")] == [
        (at("06:00"), RunState.SUCCEEDED, None),
        (at("18:00"), RunState.SKIPPED, "overlap"),
    ]
    assert [r.scheduled_for for r in town.runs_of("c")] == [at("06:00"), at("18:00")]
    assert town.started["c-20261201T060000Z"] == [at("21:20")]


def test_a_pattern_waits_for_a_driven_parent_s_occurrence_to_come(town: Town) -> None:
    """What drives the parent tells that it is still to come, so an earlier one of the date is not taken for it."""
    town.create("root", definition(cron="0 6,9 * * *"))
    town.create("driven", after("root", cron=None))
    town.create("none", after("driven", cron="0 12 * * *", timezone="Asia/Tokyo"))
    town.create("pulse", after("driven", cron="0 9 * * *"))
    town.let_pass(at("12:00"))
    assert only(town, "pulse").waits_for[0].occurrence == at("09:00")
    assert town.started[only(town, "pulse").run_id] == [at("09:40")]


def test_a_parent_paused_over_its_occurrence_is_absent_and_one_resumed_before_is_not(town: Town) -> None:
    town.create("close", definition(cron="0 9 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("07:30"))
    town.act("close", lambda state: schedule_acts.pause(state, "test", town.now))
    town.let_pass(at("08:00"))
    town.act("close", lambda state: schedule_acts.resume(state, "test", town.now))
    town.let_pass(at("10:00"))
    assert town.started[only(town, "pulse").run_id] == [at("09:20")]
    town.act("close", lambda state: schedule_acts.pause(state, "test", town.now))
    town.let_pass(at("08:59", day=2))
    assert town.runs["pulse-20261202T070000Z"].state is RunState.WAITING
    town.let_pass(at("09:01", day=2))
    assert town.runs["pulse-20261202T070000Z"].reason == "parent_absent"


def test_an_edited_parent_is_matched_anew(town: Town) -> None:
    town.create("close", definition(cron="0 9 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("07:30"))
    later = definition(cron="0 11 * * *", name="renamed")
    town.act("close", lambda state: schedule_acts.revise(state, later, "t:close", "test", town.now))
    town.let_pass(at("12:00"))
    (parent,) = only(town, "pulse").waits_for
    assert (parent.occurrence, parent.name) == (at("11:00"), "renamed")
    assert town.started[only(town, "pulse").run_id] == [at("11:20")]


def test_a_deleted_parent_answers_before_it_goes(town: Town) -> None:
    """DP-19."""
    town.create("close", definition(cron="0 9 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("07:30"))
    town.act("close", lambda state: schedule_acts.delete(state, "test", town.now))
    town.let_pass(at("07:31"))
    assert only(town, "pulse").reason == "parent_absent"
    assert town.states["close"].is_over


def test_a_missed_stretch_ends_its_occurrences_skipped(town: Town) -> None:
    """Nobody acted for a day: the parent's missed occurrence is an end like any other."""
    town.create("close", definition(cron="0 6 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *", missed_policy="latest", after_terminal_status="any_terminal"))
    town.now = at("12:00")
    for each in ("close", "pulse"):
        town.settle(each)
    town.let_pass(at("12:01"))
    waited = only(town, "pulse")
    assert (waited.waits_for[0].run_state, waited.waits_for[0].reason) == (RunState.SKIPPED, "missed")
    assert town.started[waited.run_id] == [at("12:00")]


def test_a_superseded_parent_counts_as_the_run_that_stands_for_it() -> None:
    state = ScheduleState.model_validate(_state(definition(cron="0 9 * * *")))
    older, newer = run("s1", at("09:00")), run("s1", at("10:00"), state=RunState.SUCCEEDED, seq=5)
    parenthood = schedule_parent.recorded(state.parenthood, at("09:00"), (at("09:00").replace(tzinfo=None),), older)
    parenthood = schedule_parent.recorded(parenthood, at("10:00"), (at("10:00").replace(tzinfo=None),), newer)
    gone = older.model_copy(
        update={"state": RunState.SKIPPED, "reason": "superseded", "stands_in": newer.run_id, "seq": 4}
    )
    parenthood = schedule_parent.followed(parenthood, gone)
    question = Question(
        dependent_id="d", run_id="r", dates=(at("09:00").date(),), instant=at("09:30"), until=at("23:00")
    )
    state = state.but(parenthood=schedule_parent.asked(parenthood, question), cursor=at("23:00"))
    (letter,) = _answered(state, at("12:00"))
    said = letter.answer.parent
    assert (said.occurrence, said.run_id, said.run_state) == (at("09:00"), newer.run_id, RunState.SUCCEEDED)


def test_what_was_forgotten_is_recalled_and_memory_stays_bounded() -> None:
    state = ScheduleState.model_validate(_state(definition(cron="*/5 * * * *")))
    parenthood = state.parenthood
    first = at("00:00")
    for number in range(schedule_parent.REMEMBERED_OUTCOMES + 50):
        due = first + number * timedelta(minutes=5)
        ended = run("s1", due, state=RunState.SUCCEEDED)
        parenthood = schedule_parent.recorded(parenthood, due, (due.replace(tzinfo=None),), ended)
    assert len(parenthood.outcomes) == schedule_parent.REMEMBERED_OUTCOMES
    assert parenthood.forgotten == first + 49 * timedelta(minutes=5)
    question = Question(dependent_id="d", run_id="r", dates=(first.date(),), instant=at("00:07"), until=at("23:00", 9))
    state = state.but(parenthood=schedule_parent.asked(parenthood, question), cursor=at("12:00", 2))
    now = at("12:00", 2)
    request = schedule_kin.lookup(state, now)
    assert request is not None
    recalled = parent_matching.Outcome(
        at=at("00:05"), nominal=(at("00:05").replace(tzinfo=None),), run_id="old", seq=9, state=RunState.FAILED,
        reason="execution_failed", changed_at=at("00:06"),
    )  # fmt: skip
    matched = schedule_kin.matched(state, parent_matching.look_up(request, (recalled,), {}), now)
    assert schedule_kin.lookup(matched, now) is None
    (letter,) = [each for each in schedule_kin.settled(matched, now).letters if isinstance(each, TellDependent)]
    assert (letter.answer.parent.run_id, letter.answer.parent.run_state) == ("old", RunState.FAILED)
    assert matched.parenthood.forgotten == parenthood.forgotten


def test_questions_of_dependents_that_wait_no_longer_are_dropped(town: Town, script: Script) -> None:
    """An unknown end that nobody ever resolves must not gather questions."""
    script.others["close"] = (RunState.UNKNOWN, LASTS, None)
    town.create("close", definition(cron="0 6 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("12:00", day=6))
    assert len(town.states["close"].parenthood.questions) == 1


def test_a_report_that_comes_late_takes_no_end_back(town: Town) -> None:
    town.create("close", definition(cron="0 6 * * *"))
    town.let_pass(at("07:00"))
    (ended,) = town.states["close"].parenthood.outcomes
    older = only(town, "close").model_copy(update={"state": RunState.RUNNING, "seq": ended.seq - 1})
    assert schedule_parent.followed(town.states["close"].parenthood, older).outcomes == (ended,)


def test_a_lost_answer_is_asked_for_again() -> None:
    lost: list[Letter] = []

    def post(letter: Letter) -> list[timedelta]:
        if isinstance(letter, TellDependent) and len(lost) < 3:
            lost.append(letter)
            return []
        return [timedelta()]

    town = Town(at("00:00"), Script(), post)
    town.create("close", definition(cron="0 6 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("23:00"))
    assert len(lost) == 3
    assert len(town.started[only(town, "pulse").run_id]) == 1


def test_nothing_asks_again_of_a_parent_whose_end_is_known(town: Town) -> None:
    asked: list[str] = []

    def post(letter: Letter) -> list[timedelta]:
        if isinstance(letter, AskParent):
            asked.append(letter.schedule_id)
        return [timedelta()]

    town.post = post
    town.create("early", definition(cron="0 6 * * *"))
    town.create("late", definition(cron="0 12 * * *"))
    town.create("pulse", after("early", "late", cron="0 7 * * *"))
    town.let_pass(at("13:00"))
    assert asked.count("early") == 1
    assert asked.count("late") > 1


def test_a_wait_that_is_over_does_not_collide_with_what_is_due_at_that_moment(town: Town, script: Script) -> None:
    script.others["late"] = (RunState.SUCCEEDED, timedelta(minutes=50), None)
    town.create("late", definition(cron="30 23 * * *"))
    town.create("midnight", after("late", cron="0 0 * * *"))
    town.let_pass(at("00:00", day=3))
    reasons = [found.reason for found in town.runs_of("midnight")]
    assert reasons == ["dependency_deadline", "dependency"]


def test_answers_of_other_runs_and_overtaken_ones_change_nothing(town: Town) -> None:
    town.create("close", definition(cron="0 9 * * *"))
    town.create("pulse", after("close", cron="0 7 * * *"))
    town.let_pass(at("07:30"))
    state = town.states["pulse"]
    stale = ParentWait(schedule_id="close", since=at("06:00"), told_at=at("06:00"))
    foreign = stale.model_copy(update={"status": WaitStatus.ABSENT, "told_at": at("08:00")})
    for answer in (
        Answer(run_id=state.waiting[0].run.run_id, parent=stale),
        Answer(run_id="pulse-20261130T070000Z", parent=foreign),
    ):
        assert schedule_kin.heard(state, (answer,), at("07:31")) is state


def _state(of: ScheduleDefinition) -> dict[str, object]:
    return schedule_acts.create("w", "s1", of, "t:s1", "test", at("00:00")).model_dump()


def _answered(state: ScheduleState, now: datetime) -> list[TellDependent]:
    request = schedule_kin.lookup(state, now)
    assert request is not None
    matched = schedule_kin.matched(state, parent_matching.look_up(request, (), {}), now)
    return [letter for letter in schedule_kin.settled(matched, now).letters if isinstance(letter, TellDependent)]
