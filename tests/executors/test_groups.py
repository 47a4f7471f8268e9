"""Groups, single steps and evaluations: where each writes, and what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.errors import Invalid
from domain.pipeline import Group, PipelineDefinition, Step
from domain.run import RunState
from evidence import documents, logs, reader
from executors.pipeline import PipelineExecutor
from executors.protocol import Payload, Refused
from tests.executors.test_pipeline import PAYLOAD, REFERENCE, SCHEDULED_FOR, Catalogue, Ran, script

GROUPS = (Group(name="linkedin", variables={"CHANNEL": "li"}), Group(name="mail", variables={"CHANNEL": "m"}))
SAY = script("say", 'echo "$ALMANAC_GROUP $CHANNEL"')
SHOUT = script("shout", 'echo "$CHANNEL!"; echo x >> trace', needs=("say",))
SCORE = """echo '{"name": "rows", "value": 3}' >> "$ALMANAC_SCORE_FILE"; ls "$ALMANAC_RUN_FOLDER/steps" > seen"""


def executor(*steps: Step, **more: Any) -> PipelineExecutor:
    definition = PipelineDefinition(name="finance/close", steps=steps or (SAY, SHOUT), **more)
    return PipelineExecutor(Catalogue(finance__close=definition))


def asking(**more: Any) -> Payload:
    return {**PAYLOAD, **more}


def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


async def test_each_group_runs_all_steps_in_a_folder_of_its_own(tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    outcome = await ran.outcome(executor(groups=GROUPS))
    assert (outcome.state, outcome.steps_run) == (RunState.SUCCEEDED, 4)
    said = {group.name: (ran.folder / group.name / "steps/say/stdout.log").read_text() for group in GROUPS}
    assert said == {"linkedin": "linkedin li\n", "mail": "mail m\n"}
    assert [(ran.folder / name / "work/trace").read_text() for name in ("linkedin", "mail")] == ["x\n", "x\n"]
    assert not (ran.folder / "steps").exists()
    documents.record_metadata(ran.folder, ran.identity, SCHEDULED_FOR, started=True)
    evidence = reader.read(ran.folder)
    assert evidence.quarantined == ()
    results = [one for one in evidence.documents if one.kind == "result"]
    assert {(one.identity.group, one.step_id) for one in results if one.identity} == {
        (group.name, step) for group in GROUPS for step in ("say", "shout")
    }
    assert {log.step_id for log in logs.listed(ran.folder)} == {
        f"{group.name}/{step}" for group in GROUPS for step in ("say", "shout")
    }


async def test_a_partial_run_has_only_the_groups_it_names(tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    outcome = await ran.outcome(executor(groups=GROUPS), asking(groups=["mail"]))
    assert (outcome.state, outcome.steps_run) == (RunState.SUCCEEDED, 2)
    assert sorted(path.name for path in ran.folder.iterdir()) == ["mail"]


async def test_a_failure_in_one_group_fails_the_run_and_keeps_no_other_from_running(tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    fails = script("say", 'test "$CHANNEL" = m')
    outcome = await ran.outcome(executor(fails, groups=GROUPS))
    assert (outcome.state, outcome.reason) == (RunState.FAILED, "execution_failed")
    assert outcome.message is not None
    assert outcome.message.startswith("Step 'linkedin/say' ")
    result = json.loads((ran.folder / "mail/steps/say/result-1.json").read_text())
    assert result["status"] == "succeeded"


async def test_a_single_step_runs_without_those_it_needs(tmp_path: Path) -> None:
    ran = Ran(tmp_path)
    outcome = await ran.outcome(executor(), asking(step="shout"))
    assert (outcome.state, outcome.steps_run) == (RunState.SUCCEEDED, 1)
    assert not ran.has_run("say")


@pytest.mark.parametrize(
    ("payload", "code", "field"),
    [
        ({"groups": ["post"]}, "group_unknown", "payload.groups.0"),
        ({"groups": []}, "payload_invalid", "payload.groups"),
        ({"groups": "mail"}, "payload_invalid", "payload.groups"),
        ({"groups": [1]}, "payload_invalid", "payload.groups"),
        ({"step": "whisper"}, "step_unknown", "payload.step"),
        ({"step": 1}, "payload_invalid", "payload.step"),
    ],
)
async def test_what_the_pipeline_does_not_have_is_refused_when_saved_and_when_run(
    payload: Payload, code: str, field: str
) -> None:
    running = executor(groups=GROUPS)
    with pytest.raises(Invalid) as invalid:
        await running.validate("acme", asking(**payload))
    assert (invalid.value.code, invalid.value.field) == (f"schedule.validation.{code}", field)
    with pytest.raises(Refused) as refused:
        await running.prepare("acme", asking(**payload), REFERENCE)
    assert refused.value.reason == "payload_invalid"


async def test_an_evaluation_scores_the_run_from_the_paired_folder(tmp_path: Path) -> None:
    ran = Ran(run_folder(tmp_path))
    outcome = await ran.outcome(executor(evaluation=(script("judge", SCORE),)))
    assert outcome.state is RunState.SUCCEEDED
    paired = tmp_path / "evaluation/runs" / ran.folder.name
    assert (paired / "work/seen").read_text().split() == ["say", "shout"]
    documents.record_metadata(ran.folder, ran.identity, SCHEDULED_FOR, started=True)
    evidence = reader.read(paired, owner=documents.read_metadata(ran.folder))
    ((score,),) = reader.by_execution(evidence, "score").values()
    assert score.body == {"values": {"rows": 3.0}, "notes": {}, "problems": []}
    assert score.step_id == "judge"
    assert not (ran.folder / "steps/judge").exists()


@pytest.mark.parametrize("judge", ["exit 1", "sleep 60"])
async def test_an_evaluation_that_fails_or_takes_too_long_leaves_the_run_s_end_alone(
    tmp_path: Path, judge: str
) -> None:
    ran = Ran(run_folder(tmp_path), timeout_seconds=2)
    outcome = await ran.outcome(executor(script("quick", ":"), evaluation=(script("judge", judge),)))
    assert outcome.state is RunState.SUCCEEDED
    paired = tmp_path / "evaluation/runs" / ran.folder.name
    assert json.loads((paired / "steps/judge/result-1.json").read_text())["status"] in ("failed", "stopped")


async def test_what_failed_and_what_is_only_a_part_is_not_evaluated(tmp_path: Path) -> None:
    judge = script("judge", "true")
    for number, (steps, payload) in enumerate([((script("say", "exit 1"),), PAYLOAD), ((SAY,), asking(step="say"))]):
        (tmp_path / str(number)).mkdir()
        ran = Ran(run_folder(tmp_path / str(number)))
        await ran.outcome(executor(*steps, evaluation=(judge,)), payload)
        assert not (tmp_path / str(number) / "evaluation").exists()
