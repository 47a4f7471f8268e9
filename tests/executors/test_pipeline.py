"""The executor of pipelines: what it refuses, what it freezes, and how its runs end, with real programs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.errors import Invalid
from domain.identity import RunIdentity
from domain.parameters import Parameter, ParameterType, Reference
from domain.pipeline import PipelineDefinition, PipelineVersion, Retry, Step
from domain.run import Origin, RunState
from executors import process
from executors.pipeline import PipelineExecutor, PipelineMissing, PipelineUnreleased
from executors.protocol import Execution, Outcome, Payload, Refused

SCHEDULED_FOR = datetime(2027, 3, 14, 7, tzinfo=UTC)
REFERENCE = Reference(at=SCHEDULED_FOR, zone="America/New_York")
PAYLOAD: Payload = {"pipeline": "finance/close", "version": "current"}


class Catalogue:
    """Pipelines of the workspace acme by name; None has no current version."""

    def __init__(self, **pipelines: PipelineDefinition | None) -> None:
        self.pipelines = {name.replace("__", "/"): definition for name, definition in pipelines.items()}

    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        if workspace != "acme" or pipeline not in self.pipelines:
            raise PipelineMissing
        definition = self.pipelines[pipeline]
        if definition is None:
            raise PipelineUnreleased
        return PipelineVersion(
            pipeline_id="p1", name=pipeline, version=3, body_sha256=definition.body_sha256, definition=definition
        )

    async def draft_sha256(self, workspace: str, pipeline: str) -> str | None:
        definition = self.pipelines.get(pipeline)
        return None if definition is None else definition.body_sha256


def step(step_id: str, *command: str, **more: Any) -> Step:
    return Step(id=step_id, command=command, **more)


def script(step_id: str, script: str, **more: Any) -> Step:
    return step(step_id, "sh", "-c", script, **more)


def pipeline(*steps: Step) -> PipelineDefinition:
    return PipelineDefinition(name="finance/close", steps=steps or (step("only", "true"),))


def executor(*steps: Step, parameters: tuple[Parameter, ...] = ()) -> PipelineExecutor:
    definition = pipeline(*steps).model_copy(update={"parameters": parameters})
    return PipelineExecutor(Catalogue(finance__close=definition, draft=None))


class Ran:
    """One execution in a run folder of its own, and what it left there."""

    def __init__(self, folder: Path, *steps: Step, timeout_seconds: int = 60, **identity: Any) -> None:
        self.folder = folder / "iteration-7-sched"
        self.folder.mkdir()
        self.progress: list[str] = []
        self._executor = executor(*steps)
        self._timeout_seconds = timeout_seconds
        self.identity = RunIdentity.model_validate(
            {
                "run_kind": "schedule",
                "run_id": "s1-20270314T070000Z",
                "workspace": "acme",
                "schedule_id": "s1",
                "scheduled_for": SCHEDULED_FOR,
                "trigger_source": Origin.CRON,
                "execution_id": "e1",
                "run_folder": self.folder.name,
                "plan_revision": 3,
                **identity,
            }
        )

    async def outcome(self, executor: PipelineExecutor | None = None, payload: Payload = PAYLOAD) -> Outcome:
        running = executor or self._executor
        prepared = await running.prepare("acme", payload, REFERENCE)
        execution = Execution(
            identity=self.identity,
            prepared=prepared,
            folder=self.folder,
            timeout_seconds=self._timeout_seconds,
            reference_time=SCHEDULED_FOR,
        )
        return await running.execute(execution, self.progress.append)

    def output(self, step_id: str) -> str:
        return (self.folder / "steps" / step_id / "stdout.log").read_text()

    def result(self, step_id: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / "steps" / step_id / "result-1.json").read_text())
        return document

    def has_run(self, step_id: str) -> bool:
        return (self.folder / "steps" / step_id).exists()


async def test_a_pipeline_with_a_current_version_is_a_target() -> None:
    assert await executor().validate("acme", PAYLOAD) == "pipeline:finance/close"


@pytest.mark.parametrize(
    ("payload", "field", "words"),
    [
        ({}, "payload.pipeline", "names the pipeline"),
        ({"version": "current"}, "payload.pipeline", "names the pipeline"),
        ({"pipeline": "", "version": "current"}, "payload.pipeline", "names the pipeline"),
        ({"pipeline": 7, "version": "current"}, "payload.pipeline", "names the pipeline"),
        ({"pipeline": "finance/close"}, "payload.version", "no version"),
        ({"pipeline": "finance/close", "version": None}, "payload.version", "no version"),
        ({"pipeline": "finance/close", "version": "latest"}, "payload.version", "'latest' selects nothing"),
        ({"pipeline": "finance/close", "version": 3}, "payload.version", "tied to one version"),
        ({"pipeline": "finance/close", "version": "3"}, "payload.version", "tied to one version"),
        ({"pipeline": "finance/close", "version": ["current"]}, "payload.version", "tied to one version"),
        ({**PAYLOAD, "pipelin": "x"}, "payload.pipelin", "no place"),
        ({**PAYLOAD, "reference": "x"}, "payload.reference", "no place"),
        ({**PAYLOAD, "reference_at": "x"}, "payload.reference_at", "no place"),
        ({**PAYLOAD, "reference_timezone": "x"}, "payload.reference_timezone", "no place"),
        ({**PAYLOAD, "parameters": ["a"]}, "payload.parameters", "not an object"),
        ({**PAYLOAD, "parameter_bindings": None}, "payload.parameter_bindings", "not an object"),
        (
            {**PAYLOAD, "parameter_bindings": {"day": {"source": "keyword", "name": "TODAY", "reference_at": "x"}}},
            "payload.parameter_bindings.day.reference_at",
            "no place",
        ),
    ],
)
async def test_a_payload_is_exactly_a_pipeline_and_current(payload: Payload, field: str, words: str) -> None:
    with pytest.raises(Invalid, match=words) as refusal:
        await executor().validate("acme", payload)
    assert (refusal.value.code, refusal.value.field) == ("schedule.validation.payload_invalid", field)
    assert refusal.value.hint
    with pytest.raises(Refused, match=words) as refused:
        await executor().prepare("acme", payload, REFERENCE)
    assert refused.value.reason == "payload_invalid"


@pytest.mark.parametrize(
    ("workspace", "name", "code", "reason"),
    [
        ("acme", "gone", "target_not_found", "target_not_found"),
        ("other", "finance/close", "target_not_found", "target_not_found"),
        ("acme", "draft", "target_not_released", "pointer_null"),
    ],
)
async def test_a_target_that_can_not_run_is_refused_when_saved_and_when_run(
    workspace: str, name: str, code: str, reason: str
) -> None:
    payload: Payload = {"pipeline": name, "version": "current"}
    with pytest.raises(Invalid, match=f"'{name}'") as refusal:
        await executor().validate(workspace, payload)
    assert (refusal.value.code, refusal.value.field) == (f"schedule.validation.{code}", "payload.pipeline")
    with pytest.raises(Refused, match=f"'{name}'") as refused:
        await executor().prepare(workspace, payload, REFERENCE)
    assert refused.value.reason == reason


async def test_a_stored_body_that_can_not_run_is_refused() -> None:
    with pytest.raises(Refused, match="needs 'gone'") as refused:
        await executor(step("a", "true", needs=("gone",))).prepare("acme", PAYLOAD, REFERENCE)
    assert refused.value.reason == "payload_invalid"


async def test_prepare_freezes_exactly_what_is_current() -> None:
    catalogue = Catalogue(finance__close=pipeline(step("a", "true")))
    definition = pipeline(step("a", "true"))
    prepared = await PipelineExecutor(catalogue).prepare("acme", PAYLOAD, REFERENCE)
    catalogue.pipelines["finance/close"] = pipeline(step("b", "false"))
    assert prepared.target == "pipeline:finance/close"
    assert prepared.folder_owner == "finance/close"
    assert prepared.snapshot == {
        "pipeline_id": "p1",
        "pipeline": "finance/close",
        "version": 3,
        "body_sha256": definition.body_sha256,
        "resolved_parameters": {},
    }
    assert isinstance(prepared.body, dict)
    assert PipelineVersion.model_validate(prepared.body["version"]).definition == definition


DAY = Parameter(name="day", type=ParameterType.DATE, required=True)
TODAY: Payload = {**PAYLOAD, "parameter_bindings": {"day": {"source": "keyword", "name": "TODAY"}}}


async def test_parameters_are_bound_on_the_frozen_reference_time_and_shown() -> None:
    """07:00 in UTC is 02:00 in New York on the night of the change."""
    bound = executor(parameters=(DAY, Parameter(name="note", type=ParameterType.STRING)))
    await bound.validate("acme", TODAY)
    prepared = await bound.prepare("acme", TODAY, REFERENCE)
    assert prepared.snapshot["resolved_parameters"] == {"day": "2027-03-14", "note": None}
    earlier = Reference(at=datetime(2027, 3, 14, 3, tzinfo=UTC), zone="America/New_York")
    prepared = await bound.prepare("acme", TODAY, earlier)
    assert prepared.snapshot["resolved_parameters"] == {"day": "2027-03-13", "note": None}


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (PAYLOAD, "parameters_invalid"),
        ({**PAYLOAD, "parameters": {"day": "soon"}}, "parameters_invalid"),
        ({**PAYLOAD, "parameters": {"dya": "2027-03-14"}}, "parameters_invalid"),
        ({**PAYLOAD, "parameter_bindings": {"dya": {"source": "keyword", "name": "TODAY"}}}, "binding_invalid"),
        ({**TODAY, "parameters": {"day": "2027-03-14"}}, "binding_conflict"),
    ],
)
async def test_what_does_not_bind_is_refused_when_saved_and_when_run(payload: Payload, code: str) -> None:
    bound = executor(parameters=(DAY,))
    with pytest.raises(Invalid) as refusal:
        await bound.validate("acme", payload)
    assert refusal.value.code == f"schedule.validation.{code}"
    with pytest.raises(Refused) as refused:
        await bound.prepare("acme", payload, REFERENCE)
    assert refused.value.reason == "parameters_invalid"


async def test_a_step_gets_its_parameters_as_variables_and_as_a_file(tmp_path: Path) -> None:
    show = "env | grep ^ALMANAC_PARAMETER_ | sort; cat $ALMANAC_PARAMETERS"
    ran = Ran(tmp_path, script("show", show))
    declared = (
        DAY,
        Parameter(name="Rate", type=ParameterType.DECIMAL, default=0.5),
        Parameter(name="dry", type=ParameterType.BOOLEAN, default=False),
        Parameter(name="note", type=ParameterType.STRING),
        Parameter(name="text", type=ParameterType.STRING, default="a 'quoted'\nline"),
    )
    bound = executor(script("show", show), parameters=declared)
    assert (await ran.outcome(bound, TODAY)).state is RunState.SUCCEEDED
    variables, _, document = ran.output("show").partition("{")
    assert variables.splitlines() == [
        "ALMANAC_PARAMETER_DAY=2027-03-14",
        "ALMANAC_PARAMETER_DRY=false",
        "ALMANAC_PARAMETER_RATE=0.5",
        "ALMANAC_PARAMETER_TEXT=a 'quoted'",
    ]
    values = json.loads("{" + document)
    assert values["identity"]["run_id"] == ran.identity.run_id
    assert values["body"] == {
        "day": "2027-03-14",
        "Rate": "0.5",
        "dry": False,
        "note": None,
        "text": "a 'quoted'\nline",
    }


async def test_a_run_whose_steps_all_succeed_succeeds(tmp_path: Path) -> None:
    ran = Ran(tmp_path, step("one", "echo", "hello"), step("two", "true", needs=("one",)))
    assert await ran.outcome() == Outcome(state=RunState.SUCCEEDED, steps_run=2)
    assert ran.output("one") == "hello\n"
    assert ran.progress == ["step one started", "step one succeeded", "step two started", "step two succeeded"]


async def test_a_result_says_how_the_step_ended_and_whose_it_is(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("load", "echo 12345; echo oh >&2; exit 3"))
    await ran.outcome()
    result = ran.result("load")
    assert result["identity"] == {**ran.identity.model_dump(mode="json"), "step_id": "load"}
    body = result["body"]
    assert (body["status"], body["exit_code"], body["signal"], body["stopped"]) == ("failed", 3, None, None)
    assert body["stdout"] == {"file": "stdout.log", "bytes": 6, "bytes_left_out": 0}
    assert body["stderr"] == {"file": "stderr.log", "bytes": 3, "bytes_left_out": 0}
    assert body["started_at"] <= body["completed_at"]
    assert body["started_at"].endswith("Z")


async def test_a_step_knows_its_run(tmp_path: Path) -> None:
    read = "import json, os, sys; json.dump([dict(os.environ), os.getcwd()], sys.stdout)"
    environment = {"GIVEN": "yes", "LANG": "de_DE", "ALMANAC_RUN_ID": "forged"}
    ran = Ran(tmp_path, step("load", sys.executable, "-c", read, environment=environment))
    await ran.outcome()
    known, directory = json.loads(ran.output("load"))
    identity_file = Path(known.pop("ALMANAC_RUN_IDENTITY"))
    for told in ("ALMANAC_COST_FILE", "ALMANAC_RESULT_FILE"):
        assert known.pop(told).startswith(f"{ran.folder}/steps/load/")
    known.pop("LC_CTYPE", None)
    assert directory == str(ran.folder / "work")
    assert known == {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LANG": "de_DE",
        "GIVEN": "yes",
        "ALMANAC_RUN_ID": "s1-20270314T070000Z",
        "ALMANAC_WORKSPACE": "acme",
        "ALMANAC_SCHEDULE_ID": "s1",
        "ALMANAC_SCHEDULED_FOR": "2027-03-14T07:00:00Z",
        "ALMANAC_REFERENCE_TIME": "2027-03-14T07:00:00Z",
        "ALMANAC_EXECUTION_ID": "e1",
        "ALMANAC_RUN_FOLDER": str(ran.folder),
        "ALMANAC_STEP_ID": "load",
    }
    identity = json.loads(await asyncio.to_thread(identity_file.read_text))["identity"]
    assert identity["run_id"] == "s1-20270314T070000Z"


async def test_a_run_now_has_no_occurrence(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("load", "echo ${ALMANAC_SCHEDULED_FOR-none}"), scheduled_for=None)
    await ran.outcome()
    assert ran.output("load") == "none\n"


async def test_a_manual_run_has_no_schedule_whatever_the_definition_says(tmp_path: Path) -> None:
    forged = {"ALMANAC_SCHEDULE_ID": "forged"}
    say = script("load", "echo ${ALMANAC_SCHEDULE_ID-none}", environment=forged)
    ran = Ran(tmp_path, say, run_kind="manual", schedule_id=None, trigger_source="manual", plan_revision=None)
    await ran.outcome()
    assert ran.output("load") == "none\n"


async def test_a_worker_secret_does_not_reach_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAC_DATABASE_URL", "postgresql://user:hunter2@db")
    ran = Ran(tmp_path, step("load", "env"))
    await ran.outcome()
    assert "hunter2" not in ran.output("load")


async def test_steps_share_the_work_folder(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("write", "echo 42 > figures"), step("read", "cat", "figures", needs=("write",)))
    assert (await ran.outcome()).state is RunState.SUCCEEDED
    assert ran.output("read") == "42\n"


async def test_a_failed_step_fails_the_run_and_keeps_what_needs_it_from_running(tmp_path: Path) -> None:
    ran = Ran(
        tmp_path,
        script("load", "echo fine; echo first >&2; echo 'no such table' >&2; exit 2"),
        step("report", "true", needs=("load",)),
        step("mail", "true", needs=("report",)),
        step("apart", "true"),
    )
    assert await ran.outcome() == Outcome(
        state=RunState.FAILED,
        reason="execution_failed",
        message="Step 'load' ended with exit code 2: no such table",
        steps_run=2,
    )
    assert [ran.has_run(one) for one in ("load", "report", "mail", "apart")] == [True, False, False, True]
    assert "step report not run: a step that it needs did not succeed" in ran.progress


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (step("x", "no-such-program"), "Step 'x' has the program 'no-such-program', which was not found."),
        (script("x", "exit 1"), "Step 'x' ended with exit code 1."),
        (script("x", "kill -KILL $$"), "Step 'x' was ended by signal 9 (Killed)."),
        (script("x", "sleep 1000", timeout_seconds=1), "Step 'x' was stopped after 1 s, its own timeout."),
        (script("x", "printf 'a\\033[31mb\\n\\n \\n' >&2; exit 1"), "Step 'x' ended with exit code 1: a [31mb"),
        (script("x", "printf '\\377' >&2; exit 1"), "Step 'x' ended with exit code 1: \N{REPLACEMENT CHARACTER}"),
    ],
)
async def test_a_failure_says_what_happened(tmp_path: Path, failing: Step, message: str) -> None:
    outcome = await Ran(tmp_path, failing).outcome()
    assert (outcome.state, outcome.reason, outcome.message) == (RunState.FAILED, "execution_failed", message)


async def test_a_long_last_line_is_cut(tmp_path: Path) -> None:
    outcome = await Ran(tmp_path, script("x", "printf '%09999d' 0 >&2; exit 1")).outcome()
    assert outcome.message == f"Step 'x' ended with exit code 1: {'0' * 299}…"


async def test_independent_steps_run_together(tmp_path: Path) -> None:
    """Each of the two waits for the other's word, so one after the other would never end."""
    meet = "mkfifo $0 2>/dev/null; mkfifo $1 2>/dev/null; if [ $ALMANAC_STEP_ID = a ]; then echo x > $0; read y < $1; "
    meet += "else read y < $0; echo x > $1; fi"
    ran = Ran(tmp_path, step("a", "sh", "-c", meet, "one", "two"), step("b", "sh", "-c", meet, "one", "two"))
    assert (await ran.outcome()).state is RunState.SUCCEEDED


async def test_no_more_than_four_steps_run_together(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "said")
    ran = Ran(tmp_path, *(script(f"s{n}", f"echo here > {tmp_path}/said; exec sleep 1000") for n in range(12)))
    running = asyncio.create_task(ran.outcome())
    await asyncio.to_thread((tmp_path / "said").read_text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ran.progress == [f"step s{n} started" for n in range(4)]


async def test_a_run_that_takes_too_long_is_stopped_and_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)
    ran = Ran(
        tmp_path,
        step("quick", "true"),
        script("slow", "sleep 1000", needs=("quick",)),
        step("late", "true", needs=("slow",)),
        timeout_seconds=1,
    )
    assert await ran.outcome() == Outcome(
        state=RunState.FAILED,
        reason="execution_timeout",
        message="The run was stopped after 1 s; running then: 'slow'.",
        steps_run=2,
    )
    assert ran.result("slow")["body"]["stopped"] == "cancelled"
    assert not ran.has_run("late")


async def test_cancelling_stops_the_programs_and_goes_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "said")
    ran = Ran(
        tmp_path, script("slow", f"echo $$ > {tmp_path}/said; exec sleep 1000"), step("late", "true", needs=("slow",))
    )
    running = asyncio.create_task(ran.outcome())
    pid = int(await asyncio.to_thread((tmp_path / "said").read_text))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    body = ran.result("slow")["body"]
    assert (body["status"], body["stopped"], body["signal"]) == ("stopped", "cancelled", 15)
    assert not ran.has_run("late")


async def test_a_folder_that_can_not_be_written_fails_the_step_and_not_the_worker(tmp_path: Path) -> None:
    ran = Ran(tmp_path, step("load", "true"))
    (ran.folder / "steps").write_text("in the way")
    outcome = await ran.outcome()
    assert (outcome.state, outcome.reason) == (RunState.FAILED, "execution_failed")
    assert outcome.message == "Step 'load' could not write to the run folder: Not a directory"


async def test_a_second_execution_overwrites_nothing(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("load", "date +%N"))
    await ran.outcome()
    first = ran.output("load")
    await ran.outcome()
    assert ran.output("load") == first
    assert {path.name for path in (ran.folder / "steps" / "load").iterdir()} == {
        *("stdout.log", "stderr.log", "identity-1.json", "result-1.json"),
        *("stdout-2.log", "stderr-2.log", "identity-2.json", "result-2.json"),
    }


AGAIN = Retry(attempts=3, pause_seconds=0)


async def test_a_step_that_may_run_twice_is_tried_again_with_logs_of_its_own(tmp_path: Path) -> None:
    ran = Ran(
        tmp_path, script("flaky", "echo try; mkdir first 2>/dev/null && exit 1; true", idempotent=True, retry=AGAIN)
    )
    assert (await ran.outcome()).state is RunState.SUCCEEDED
    logs = ran.folder / "steps" / "flaky"
    assert [(logs / name).read_text() for name in ("stdout.log", "stdout-2.log")] == ["try\n", "try\n"]
    statuses = [json.loads((logs / f"result-{n}.json").read_text())["body"]["status"] for n in (1, 2)]
    assert statuses == ["failed", "succeeded"]
    assert "step flaky failed and is tried again: ended with exit code 1." in ran.progress


async def test_a_step_that_keeps_failing_fails_after_its_last_attempt(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("broken", "exit 4", idempotent=True, retry=AGAIN))
    outcome = await ran.outcome()
    assert (outcome.state, outcome.message) == (RunState.FAILED, "Step 'broken' ended with exit code 4.")
    assert not (ran.folder / "steps" / "broken" / "stdout-4.log").exists()
    assert (ran.folder / "steps" / "broken" / "stdout-3.log").exists()


async def test_a_step_runs_once_unless_it_says_otherwise(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("once", "exit 4", idempotent=True))
    assert (await ran.outcome()).state is RunState.FAILED
    assert not (ran.folder / "steps" / "once" / "stdout-2.log").exists()


async def test_a_retry_of_what_may_run_only_once_is_refused() -> None:
    with pytest.raises(Refused, match="does not say that it may run twice"):
        await executor(script("once", "true", retry=AGAIN)).prepare("acme", PAYLOAD, REFERENCE)
