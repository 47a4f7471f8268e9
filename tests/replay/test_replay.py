"""Workflows decide today as they did when these histories were written; else a deployment would break what runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from domain import messages
from tests.replay import histories
from tests.replay.scenarios import ALONE, TOGETHER
from worker import wiring
from worker.sandbox import runner

FILES = histories.files()


@pytest.fixture(scope="module")
def replayer() -> Replayer:
    return Replayer(workflows=wiring.WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=runner())


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
async def test_a_recorded_history_replays(replayer: Replayer, file: Path) -> None:
    await replayer.replay_workflow(histories.parsed(histories.raw(file)))


def test_every_scenario_is_recorded() -> None:
    assert {file.parent.name for file in FILES} >= {*TOGETHER, *ALONE}


def test_every_update_and_signal_is_in_a_history() -> None:
    """A new one belongs into a scenario, for its name and its payload are promises too."""
    named = {name: value for name, value in vars(messages).items() if name.endswith(("_UPDATE", "_SIGNAL"))}
    heard = {name for file in FILES for name in _messages(histories.raw(file))}
    assert [name for name in named.values() if name not in heard] == []


def test_both_sides_of_a_continue_as_new_are_recorded() -> None:
    for kind in ("schedule", "lane"):
        ends = [_types(histories.raw(file))[-1] for file in FILES if f"-{kind}." in file.name]
        starts = [_started(histories.raw(file)) for file in FILES if f"-{kind}." in file.name]
        assert "EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW" in ends, kind
        assert any(started.get("continuedExecutionRunId") for started in starts), kind


def _other_child(history: dict[str, Any]) -> bool:
    for attributes in _attributes(history, "startChildWorkflowExecutionInitiatedEventAttributes"):
        attributes["workflowId"] += "-other"
        return True
    return False


def _other_activity(history: dict[str, Any]) -> bool:
    for attributes in _attributes(history, "activityTaskScheduledEventAttributes"):
        attributes["activityType"]["name"] = "almanac.another"
        return True
    return False


def _no_timer(history: dict[str, Any]) -> bool:
    """Where a timer was started once, something else happened."""
    for event in history["events"]:
        if event["eventType"] == "EVENT_TYPE_TIMER_STARTED":
            event["eventType"] = "EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED"
            del event["timerStartedEventAttributes"]
            event["activityTaskCancelRequestedEventAttributes"] = {"scheduledEventId": "5"}
            return True
    return False


@pytest.mark.parametrize("change", [_other_child, _other_activity, _no_timer])
async def test_a_history_that_other_code_wrote_does_not_replay(replayer: Replayer, change: Any) -> None:
    tampered = 0
    for file in FILES:
        history = copy.deepcopy(histories.raw(file))
        if not change(history):
            continue
        tampered += 1
        with pytest.raises(NondeterminismError):
            await replayer.replay_workflow(histories.parsed(history))
        if tampered == 3:
            return
    assert tampered, "no history to tamper with"


def _started(history: dict[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = history["events"][0]["workflowExecutionStartedEventAttributes"]
    return attributes


def _types(history: dict[str, Any]) -> list[str]:
    return [event["eventType"] for event in history["events"]]


def _attributes(history: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    return (event[kind] for event in history["events"] if kind in event)


def _messages(history: dict[str, Any]) -> Iterator[str]:
    for attributes in _attributes(history, "workflowExecutionSignaledEventAttributes"):
        yield attributes["signalName"]
    for attributes in _attributes(history, "workflowExecutionUpdateAcceptedEventAttributes"):
        yield attributes["acceptedRequest"]["input"]["name"]
