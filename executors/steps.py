"""The steps of one execution, and what became of each so far.

Steps start when all that they need has succeeded, a few at a time, one group after the other. A failed step fails the
run: what needs it does not run, what does not need it still does. Once all have succeeded, the evaluation's steps
score the run; what becomes of these changes nothing about how it ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.pipeline import Group, Selection, Step
from domain.run import RunState
from executors import returned, step
from executors.pipeline_secrets import Opened
from executors.protocol import LARGEST_RESULT, Execution, Outcome, Result, TooLarge

STEPS_AT_ONCE = 4


@dataclass
class _Place:
    """Where some steps run: the run folder, a group's folder in it, or the evaluation's."""

    execution: Execution
    prefix: str = ""
    """What stands before their ids where people read them."""
    variables: Mapping[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


class Work:
    def __init__(
        self,
        execution: Execution,
        parameters: Opened,
        progress: Callable[[str], None],
        means: step.Means,
        *,
        result_ttl_seconds: int,
    ) -> None:
        self._ttl_seconds = result_ttl_seconds
        self._execution = execution
        self._parameters = parameters
        self._means = means
        self._progress = progress
        self._slots = asyncio.Semaphore(STEPS_AT_ONCE)
        self._running: list[str] = []
        self._started = 0
        self._failures: dict[str, str] = {}
        self._are_done = False
        self._result: Result | None = None
        self._remark: str | None = None

    async def run(self, selection: Selection) -> None:
        places = [self._of_group(group) for group in selection.groups] or [_Place(self._execution)]
        for place in places:
            await self._all(selection.steps, place)
            self._failures |= place.failures
        self._are_done = True
        if not self._failures:
            await asyncio.to_thread(self._take_result, selection.steps[-1], places[-1])
        if selection.evaluation and not self._failures:
            await self._all(selection.evaluation, self._of_evaluation())

    def _take_result(self, last: Step, place: _Place) -> None:
        """One that can't be kept is no failure: what lasts is what the steps wrote."""
        try:
            content = returned.read(last, place.execution, self._parameters)
            self._result = None if content is None else Result.of(content, self._ttl_seconds)
        except TooLarge:
            self._remark = f"The result of step '{last.id}' has more than {LARGEST_RESULT} bytes and is not kept."
        except (ValueError, RecursionError):
            self._remark = f"The result of step '{last.id}' is not JSON that can be kept."
        except OSError as error:
            self._remark = f"The result of step '{last.id}' can't be read: {error.strerror or error}."

    def outcome(self) -> Outcome:
        if not self._failures:
            return Outcome(state=RunState.SUCCEEDED, message=self._remark, steps_run=self._started, result=self._result)
        first, failure = next(iter(self._failures.items()))
        more = len(self._failures) - 1
        message = f"Step '{first}' {failure}" + (f" (and {more} more failed)" if more else "")
        return Outcome(state=RunState.FAILED, reason="execution_failed", message=message, steps_run=self._started)

    def timed_out(self) -> Outcome:
        """The time was over for the run, unless only its evaluation was still going on."""
        if self._are_done:
            return self.outcome()
        during = ", ".join(f"'{step_id}'" for step_id in self._running) or "none"
        return Outcome(
            state=RunState.FAILED,
            reason="execution_timeout",
            message=f"The run was stopped after {self._execution.timeout_seconds} s; running then: {during}.",
            steps_run=self._started,
        )

    def _of_group(self, group: Group) -> _Place:
        identity = self._execution.identity.model_copy(update={"group": group.name})
        below = {"identity": identity, "folder": self._execution.folder / group.name}
        return _Place(self._execution.model_copy(update=below), f"{group.name}/", group.variables)

    def _of_evaluation(self) -> _Place:
        evaluated = self._execution.folder
        paired = {"folder": _paired(evaluated), "evaluates": evaluated}
        return _Place(self._execution.model_copy(update=paired), "evaluation/")

    async def _all(self, ordered: tuple[Step, ...], place: _Place) -> None:
        tasks: dict[str, asyncio.Task[bool]] = {}
        async with asyncio.TaskGroup() as group:
            for one in ordered:
                tasks[one.id] = group.create_task(self._after([tasks[need] for need in one.needs], one, place))

    async def _after(self, needs: list[asyncio.Task[bool]], one: Step, place: _Place) -> bool:
        """Whether the step succeeded; it isn't even tried when a step that it needs did not."""
        succeeded = [await need for need in needs]
        if not all(succeeded):
            self._progress(f"step {place.prefix}{one.id} not run: a step that it needs did not succeed")
            return False
        async with self._slots:
            return await self._run(one, place)

    async def _run(self, one: Step, place: _Place) -> bool:
        name = f"{place.prefix}{one.id}"
        self._started += 1
        self._running.append(name)
        self._progress(f"step {name} started")
        failure = await self._attempts(one, place)
        self._running.remove(name)
        self._progress(f"step {name} failed: {failure}" if failure else f"step {name} succeeded")
        if failure is not None:
            place.failures[name] = failure
        return failure is None

    async def _attempts(self, one: Step, place: _Place) -> str | None:
        """What went wrong with the last attempt. Each attempt has its own logs and its own result."""
        failure = await self._attempt(one, place)
        if one.retry is None:
            return failure
        for attempt in range(1, one.retry.attempts):
            if failure is None:
                return None
            self._progress(f"step {place.prefix}{one.id} failed and is tried again: {failure}")
            await asyncio.sleep(one.retry.pause_seconds * 2 ** (attempt - 1))
            failure = await self._attempt(one, place)
        return failure

    async def _attempt(self, one: Step, place: _Place) -> str | None:
        of_group = one.model_copy(update={"environment": {**one.environment, **place.variables}})
        return await step.run(of_group, place.execution, self._parameters, self._means)


def _paired(folder: Path) -> Path:
    """Where the evaluation of the run in this folder writes."""
    return folder.parent.with_name("evaluation") / "runs" / folder.name
