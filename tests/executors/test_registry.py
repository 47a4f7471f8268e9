"""Executors by name, also those of other distributions, which are really installed here."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from domain.errors import Invalid
from domain.pipeline import PipelineVersion
from executors.pipeline import PipelineExecutor, PipelineMissing
from executors.protocol import DetachedExecutor, Refused, SlotExecutor
from executors.registry import Registry, installed


class NoPipelines:
    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        raise PipelineMissing

    async def draft_sha256(self, workspace: str, pipeline: str) -> str | None:
        return None


THIRD_PARTY = """
class Sparkler:
    name = "spark"
    async def validate(self, workspace, payload): return "spark:" + workspace
    async def prepare(self, workspace, payload, reference): ...
    async def execute(self, execution, progress): ...

class Comet:
    name = "comet"
    async def validate(self, workspace, payload): ...
    async def prepare(self, workspace, payload, reference): ...
    async def launch(self, execution): ...
    async def observe(self, execution): ...
    async def cancel(self, execution): ...

class Half:
    name = "half"

class Dud(Sparkler):
    execute = None

class Broken:
    def __init__(self): raise RuntimeError("no licence")
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    (tmp_path / "third_party_executors.py").write_text(THIRD_PARTY)
    distribution = tmp_path / "third_party-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(
        "[almanac.executors]\n"
        "spark = third_party_executors:Sparkler\n"
        "comet = third_party_executors:Comet\n"
        "half = third_party_executors:Half\n"
        "dud = third_party_executors:Dud\n"
        "broken = third_party_executors:Broken\n"
        "gone = no_such_module:Executor\n"
        "pipeline = third_party_executors:Sparkler\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return installed([PipelineExecutor(NoPipelines())])


def test_the_built_in_executor_is_known() -> None:
    registry = installed([PipelineExecutor(NoPipelines())])
    assert registry.names == ("pipeline",)
    assert isinstance(registry.for_save("pipeline"), PipelineExecutor)
    assert registry.for_run("pipeline") is registry.for_save("pipeline")


async def test_another_distribution_adds_one(registry: Registry) -> None:
    assert registry.names == ("comet", "pipeline", "spark")
    assert isinstance(registry.for_run("spark"), SlotExecutor)
    assert isinstance(registry.for_run("comet"), DetachedExecutor)
    assert await registry.for_run("spark").validate("acme", {}) == "spark:acme"


def test_nobody_replaces_a_built_in(registry: Registry) -> None:
    assert isinstance(registry.for_run("pipeline"), PipelineExecutor)
    assert registry.unusable["pipeline (third_party_executors:Sparkler)"] == "the name is taken"


def test_an_unknown_one_is_refused_with_the_names_there_are(registry: Registry) -> None:
    with pytest.raises(Invalid, match="no executor 'pipelines'") as refusal:
        registry.for_save("pipelines")
    assert (refusal.value.code, refusal.value.field) == ("schedule.validation.executor_unknown", "executor")
    assert refusal.value.hint == "Known executors: comet, pipeline, spark."


def test_one_that_is_gone_when_a_run_needs_it_is_refused(registry: Registry) -> None:
    with pytest.raises(Refused, match="no executor 'dask'") as refused:
        registry.for_run("dask")
    assert refused.value.reason == "executor_unavailable"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("half", "third_party_executors:Half has no validate, prepare"),
        ("dud", "third_party_executors:Dud has no execute, and no launch, observe and cancel in its place"),
        ("broken", "third_party_executors:Broken failed with RuntimeError: no licence"),
        ("gone", "no_such_module:Executor failed with ModuleNotFoundError"),
    ],
)
def test_a_broken_one_says_why_and_takes_no_other_along(registry: Registry, name: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        registry.for_save(name)
    with pytest.raises(Refused, match=words):
        registry.for_run(name)
