"""The schedule's workflow: knows when it is due, and lives as long as the schedule does.

It wakes for any reason, looks at its state and the clock, and decides; no timer's ring means by itself that
something is due. Handlers only change the state; what follows from it is settled in one place.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain import (
        lane,
        messages,
        schedule_acts,
        schedule_kin,
        schedule_lane,
        schedule_runs,
        schedule_state,
    )
    from domain.dependency import Answer, Question
    from domain.errors import Conflict, Forbidden, NotFound
    from domain.messages import (
        Act,
        CreateSchedule,
        DropRun,
        ReplanAnswer,
        ReviseSchedule,
        RunNow,
        RunNowAnswer,
        ScheduleAnswer,
        ScheduleInput,
    )
    from domain.schedule import ScheduleView
    from domain.schedule_mail import ParentDue, Subscribe
    from domain.schedule_state import ScheduleState
    from workflows import words
    from workflows.alarm import Alarm
    from workflows.dispatch import Dispatch
    from workflows.kinship import Kinship
    from workflows.passing import Time
    from workflows.refusals import refusals
    from workflows.renewal import history_is_long
    from workflows.shown import Shown


@workflow.defn(name=messages.SCHEDULE_WORKFLOW)
class ScheduleWorkflow:
    @workflow.init
    def __init__(self, start: ScheduleInput) -> None:
        self._start = start
        self._state = start.state
        self._changed = start.state is not None
        self._alarm = Alarm()
        self._dispatch = Dispatch(lambda: self._live, self._keep)
        self._shown = Shown()
        self._time = Time(lambda: self._live, lambda state: self._put(schedule_state.announced(state)))
        self._kinship = Kinship(lambda: self._live, self._keep)

    @workflow.run
    async def run(self, start: ScheduleInput) -> None:
        await workflow.wait_condition(lambda: self._state is not None)
        while True:
            await self._settle()
            state = self._live
            if state.is_over:
                await workflow.wait_condition(workflow.all_handlers_finished)
                return
            if history_is_long(self._start.history_limit) and not self._changed:
                await workflow.wait_condition(workflow.all_handlers_finished)
                if self._changed:
                    continue
                workflow.continue_as_new(start.model_copy(update={"state": self._live}))
            self._set_alarm()
            await workflow.wait_condition(lambda: self._changed or self._alarm.rang)

    # What people say ---------------------------------------------------------------------------------

    @workflow.update(name=messages.CREATE_UPDATE)
    async def create(self, request: CreateSchedule) -> ScheduleAnswer:
        if self._state is None:
            state = schedule_acts.create(
                self._start.workspace,
                self._start.schedule_id,
                request.definition,
                request.target,
                request.by,
                workflow.now(),
            )
            return await self._did(schedule_acts.set_workspace_active(state, request.workspace_active))
        return await self._answer()

    @create.validator
    def _check_create(self, request: CreateSchedule) -> None:
        with refusals():
            if self._state is not None and self._state.definition != request.definition:
                raise Conflict("schedule.exists", "There is already a schedule of this id, with another definition.")

    @workflow.update(name=messages.REVISE_UPDATE)
    async def revise(self, request: ReviseSchedule) -> ScheduleAnswer:
        before = self._live
        revised = schedule_acts.revise(before, request.definition, request.target, request.by, workflow.now())
        return await self._answer() if revised is before else await self._did(revised)

    @revise.validator
    def _check_revise(self, request: ReviseSchedule) -> None:
        with refusals():
            schedule_acts.check_revision(self._require(), request.expected_revision)

    @workflow.update(name=messages.PAUSE_UPDATE)
    async def pause(self, act: Act) -> ScheduleAnswer:
        return await self._did(schedule_acts.pause(self._live, act.by, workflow.now()))

    @workflow.update(name=messages.RESUME_UPDATE)
    async def resume(self, act: Act) -> ScheduleAnswer:
        return await self._did(schedule_acts.resume(self._live, act.by, workflow.now()))

    @workflow.update(name=messages.UNBLOCK_UPDATE)
    async def unblock(self, act: Act) -> ScheduleAnswer:
        return await self._did(schedule_acts.unblock(self._live, act.by, workflow.now()))

    @workflow.update(name=messages.REPLAN_UPDATE)
    async def replan(self, act: Act) -> ReplanAnswer:
        before = self._live
        answer = await self._did(schedule_acts.replan(before, workflow.now()))
        moved = schedule_acts.moved(before, self._live)
        return ReplanAnswer(schedule=answer.schedule, events=answer.events, moved=moved)

    @workflow.update(name=messages.DELETE_UPDATE)
    async def delete(self, act: Act) -> ScheduleAnswer:
        return await self._did(schedule_acts.delete(self._live, act.by, workflow.now()))

    @workflow.update(name=messages.DROP_UPDATE)
    async def drop(self, drop: DropRun) -> ScheduleAnswer:
        return await self._did(schedule_acts.drop(self._live, drop.run_id, drop.by, workflow.now()))

    @drop.validator
    def _check_drop(self, drop: DropRun) -> None:
        with refusals():
            schedule_acts.check_drop(self._require(), drop.run_id)

    @pause.validator
    @resume.validator
    @unblock.validator
    @replan.validator
    @delete.validator
    def _check_act(self, act: Act) -> None:
        with refusals():
            self._require()

    @workflow.update(name=messages.RUN_NOW_UPDATE)
    def run_now(self, request: RunNow) -> RunNowAnswer:
        known = schedule_acts.known_request(self._live, request.key)
        if known is not None:
            return RunNowAnswer(run=known, events=())
        state, run = schedule_acts.run_now(self._live, request.key, request.by, workflow.now(), request.origin)
        self._put(schedule_state.announced(state))
        return RunNowAnswer(run=run, events=self._live.outbox)

    @run_now.validator
    def _check_run_now(self, request: RunNow) -> None:
        with refusals():
            schedule_acts.check_run_now(self._require(), request.key, request.by)

    @workflow.signal(name=messages.RUN_NOW_SIGNAL)
    def run_now_signal(self, request: RunNow) -> None:
        """The same for services that need no answer; a refusal is recorded as a skipped run."""
        if self._state is None or self._state.deleted or schedule_acts.known_request(self._state, request.key):
            return
        now = workflow.now()
        try:
            schedule_acts.check_run_now(self._state, request.key, request.by)
        except Forbidden:
            # Nobody real asked, so there is nobody to name in a row.
            return
        except Conflict as refusal:
            self._put(schedule_acts.refused_run_now(self._state, request.key, refusal, request.by, now))
        else:
            self._put(schedule_state.announced(schedule_acts.run_now(self._state, request.key, request.by, now)[0]))

    @workflow.signal(name=messages.WORKSPACE_SIGNAL)
    def set_workspace_active(self, change: messages.SetWorkspaceActive) -> None:
        if self._state is not None:
            self._put(schedule_state.announced(schedule_acts.set_workspace_active(self._state, change.active)))

    @workflow.signal(name=messages.RUN_REPORT_SIGNAL)
    def run_report(self, report: messages.RunReport) -> None:
        self._put(schedule_state.announced(schedule_runs.run_reported(self._live, report.changes, workflow.now())))

    @workflow.signal(name=messages.QUESTION_SIGNAL)
    def await_occurrence(self, question: Question) -> None:
        self._put(schedule_kin.asked(self._live, question))

    @workflow.signal(name=messages.SUBSCRIBE_SIGNAL)
    def subscribe(self, subscription: Subscribe) -> None:
        self._put(schedule_kin.subscribed(self._live, subscription))

    @workflow.signal(name=messages.ANSWER_SIGNAL)
    def parent_occurrence(self, answer: Answer) -> None:
        self._kinship.heard(answer)
        self._changed = True

    @workflow.signal(name=messages.PARENT_DUE_SIGNAL)
    def parent_due(self, due: ParentDue) -> None:
        self._kinship.parent_due(due)
        self._changed = True

    @workflow.query(name="schedule")
    def view(self) -> ScheduleView:
        return schedule_state.view(self._live)

    # Settling ----------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Decides until nothing is left to decide, and tells the outside what came of it."""
        while True:
            self._changed = False
            self._hear()
            await self._time.decide()
            await self._settle_kin()
            self._shown.update(self._live)
            await self._dispatch.deliver()
            # Again, without what has been delivered; unlike attributes, details cost no history.
            workflow.set_current_details(words.schedule_details(self._live))
            if not self._changed:
                return

    def _hear(self) -> None:
        """What parents have said. A wait that is over now does not collide with what falls due at the same moment."""
        heard = self._kinship.taken_in()
        if heard is not self._live:
            self._put(schedule_state.announced(heard))

    async def _settle_kin(self) -> None:
        before = self._live
        await self._kinship.settle()
        if self._live.outbox is not before.outbox or self._live.mail is not before.mail:
            self._put(schedule_state.announced(self._live))

    # Parts -------------------------------------------------------------------------------------------

    def _put(self, state: ScheduleState) -> None:
        self._state = state
        self._changed = True

    def _keep(self, state: ScheduleState) -> None:
        self._state = state

    @property
    def _live(self) -> ScheduleState:
        assert self._state is not None
        return self._state

    def _require(self) -> ScheduleState:
        if self._state is None or self._state.deleted:
            raise NotFound("schedule.not_found", "There is no such schedule.")
        return self._state

    async def _did(self, state: ScheduleState) -> ScheduleAnswer:
        self._put(schedule_state.announced(state))
        return await self._answer()

    async def _answer(self) -> ScheduleAnswer:
        await workflow.wait_condition(lambda: not self._live.needs_plan)
        return ScheduleAnswer(schedule=schedule_state.view(self._live), events=self._live.outbox)

    def _set_alarm(self) -> None:
        planned, gate = self._live.next_planned, self._live.gate
        times = (
            planned.at if planned else None,
            lane.next_wake(gate) if gate else None,
            schedule_lane.next_offer(self._live),
            schedule_kin.next_wake(self._live, workflow.now()),
            self._kinship.retry_at,
            self._dispatch.retry_at,
        )
        self._alarm.set(min((at for at in times if at is not None), default=None), words.schedule_timer(self._live))
