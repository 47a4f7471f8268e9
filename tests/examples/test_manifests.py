"""The examples' YAML is accepted, its programs are there, and `scripts/up` runs a schedule that it has."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from cli.manifests import read_all
from domain import cron, occurrences, zones
from domain.pipeline import PipelineDefinition
from domain.schedule import ScheduleDefinition
from tests.examples.steps import EXAMPLES


def test_every_schedule_runs_a_pipeline_that_is_there_too() -> None:
    manifests, mistakes = read_all([EXAMPLES])
    assert mistakes == []
    definitions = [manifest.definition for manifest in manifests]
    pipelines = {one.name for one in definitions if isinstance(one, PipelineDefinition)}
    schedules = [one for one in definitions if isinstance(one, ScheduleDefinition)]
    assert pipelines == {"examples/nightly-backup", "market/close", "market/pulse"}
    assert {one.payload["pipeline"] for one in schedules} == pipelines
    for one in schedules:
        assert one.cron is not None
        now = datetime(2026, 3, 1, tzinfo=UTC)
        occurrences.check_interval(cron.parse(one.cron), zones.load(one.timezone), now, 300)


def test_every_program_and_file_that_a_step_names_is_there() -> None:
    manifests, _ = read_all([EXAMPLES])
    named = [
        Path(word)
        for manifest in manifests
        if isinstance(manifest.definition, PipelineDefinition)
        for step in manifest.definition.steps
        for word in (step.command or ())[1:]
    ]
    assert named
    assert all(path.is_file() for path in named)


def test_scripts_up_applies_them_and_runs_one() -> None:
    script = (EXAMPLES.parent / "scripts" / "up").read_text()
    found = re.search(r"--apply (\S+) --run-now (\S+)", script)
    assert found
    manifests, _ = read_all([EXAMPLES])
    names = {m.definition.name for m in manifests if isinstance(m.definition, ScheduleDefinition)}
    assert found[1] == "examples"
    assert found[2] in names
