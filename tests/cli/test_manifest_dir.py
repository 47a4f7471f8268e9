"""`${manifest_dir}`: how steps name the programs and data that lie beside their YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.manifests import read_all
from domain.pipeline import PipelineDefinition, Step

PIPELINE = """\
kind: pipeline
name: a/b
description: "${manifest_dir} is only for steps"
steps:
  - id: one
    command: [python3, "${manifest_dir}/one.py", "--data=${manifest_dir}/data", "${HOME}", "$manifest_dir"]
    environment: {DATA: "${manifest_dir}/data", OTHER: "${OTHER}"}
"""


def step_of(file: Path) -> Step:
    (manifest,), mistakes = read_all([file])
    assert mistakes == []
    assert isinstance(manifest.definition, PipelineDefinition)
    assert manifest.definition.description == "${manifest_dir} is only for steps"
    return manifest.definition.steps[0]


def test_it_is_the_folder_of_the_file_and_nothing_else_is_expanded(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "all.yaml"
    file.parent.mkdir()
    file.write_text(PIPELINE)

    step = step_of(file)

    folder = str(tmp_path / "deep")
    assert step.command == ("python3", f"{folder}/one.py", f"--data={folder}/data", "${HOME}", "$manifest_dir")
    assert step.environment == {"DATA": f"{folder}/data", "OTHER": "${OTHER}"}


def test_it_is_absolute_however_the_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all.yaml").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)

    assert step_of(Path("all.yaml")).command == step_of(tmp_path / "all.yaml").command
