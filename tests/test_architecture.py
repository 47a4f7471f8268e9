"""The shape that must stay: imports point down only, decisions are pure, and only entry points read settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = (
    ("bench",),
    ("worker", "api", "cli", "embedded"),
    ("workflows",),
    ("activities",),
    ("executors", "evidence", "readmodel", "mail"),
    ("domain",),
)
"""From top to bottom: each imports from those below it and from no other."""

BESIDE = {
    ("cli", "embedded"),  # `almanac up` is the embedded stack's entry point
    ("executors", "evidence"),  # what a step did is written as evidence
}
"""Imports within a layer. They never go round."""

DOMAIN_IMPORTS = {
    *("__future__", "base64", "bisect", "collections", "dataclasses", "datetime", "decimal", "difflib", "enum"),
    *("functools", "hashlib", "itertools", "json", "math", "re", "string", "struct", "typing", "unicodedata"),
    *("uuid", "zlib"),
    *("pydantic", "croniter"),
    *("importlib", "tzdata", "zoneinfo"),  # the pinned zone data, which is part of the program
}
WORKFLOW_IMPORTS = {"__future__", "asyncio", "collections", "contextlib", "datetime", "typing", "temporalio"}

ENTRY_POINTS = {"worker", "api", "cli", "embedded", "bench"}
MAY_READ_ENVIRONMENT = {
    "executors/step.py",  # hands PATH and HOME on to programs
    "executors/guardian.py",  # a process of its own, which finds programs by their PATH and not by its own
}

IMPURE_CALLS = {
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("uuid.uuid1", "uuid.uuid4", "open", "input", "print"),
}

POLICIES = {"MissedPolicy", "CollisionPolicy"}
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "model", "models", "misc"}

LONGEST_WORKFLOW_FILE = 300
LONGEST_FUNCTION_OF_MOST = 35


def packages() -> list[str]:
    return sorted(init.parent.name for init in ROOT.glob("*/__init__.py") if init.parent.name != "tests")


def sources(*tops: str) -> list[Path]:
    return sorted(path for top in tops for path in (ROOT / top).rglob("*.py"))


def imported(source: str) -> Iterator[str]:
    """The full names of the modules that a source imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else str(node.module)


def top(module: str) -> str:
    return module.partition(".")[0]


def upward(package: str, source: str) -> list[str]:
    """What a source of this package imports though it stands above or beside it."""
    ranks = {name: rank for rank, names in enumerate(LAYERS) for name in names}
    return [
        module
        for module in imported(source)
        if module == "."
        or (
            top(module) in ranks
            and top(module) != package
            and ranks[top(module)] <= ranks[package]
            and (package, top(module)) not in BESIDE
        )
    ]


def impure(source: str, allowed: set[str]) -> list[str]:
    """Modules beside the allowed ones and our own, and calls whose answer is not decided by their arguments."""
    foreign = [name for name in imported(source) if top(name) not in allowed and top(name) not in packages()]
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return foreign + [call for call in calls if call in IMPURE_CALLS]


def environment_reads(source: str) -> list[str]:
    reads = {"os.environ", "os.getenv", "BaseSettings"}
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute | ast.Name))
    return [ast.unparse(node) for node in nodes if ast.unparse(node) in reads]


def functions(source: str) -> Iterator[int]:
    """The length of each function, in lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield node.end_lineno - node.lineno + 1


def findings(paths: list[Path], found: dict[Path, list[str]]) -> dict[str, list[str]]:
    return {str(path.relative_to(ROOT)): found[path] for path in paths if found[path]}


def test_every_package_has_its_layer() -> None:
    assert set(packages()) <= {name for names in LAYERS for name in names}


@pytest.mark.parametrize("package", packages())
def test_imports_point_down(package: str) -> None:
    paths = sources(package)
    assert findings(paths, {path: upward(package, path.read_text()) for path in paths}) == {}


def test_the_domain_decides_by_its_arguments_alone() -> None:
    paths = sources("domain")
    assert findings(paths, {path: impure(path.read_text(), DOMAIN_IMPORTS) for path in paths}) == {}
    waiting = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
    assert [path for path in paths if any(isinstance(n, waiting) for n in ast.walk(ast.parse(path.read_text())))] == []


def test_workflows_decide_by_what_is_recorded() -> None:
    paths = sources("workflows")
    assert findings(paths, {path: impure(path.read_text(), WORKFLOW_IMPORTS) for path in paths}) == {}


def test_only_entry_points_read_the_environment() -> None:
    paths = [path for path in sources(*packages()) if path.relative_to(ROOT).parts[0] not in ENTRY_POINTS]
    found = findings(paths, {path: environment_reads(path.read_text()) for path in paths})
    assert set(found) == MAY_READ_ENVIRONMENT


def test_policies_are_decided_in_the_domain() -> None:
    """A workflow or an activity that knows a policy's names has begun to decide by it."""
    paths = sources("workflows", "activities")
    names = {path: {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)} for path in paths}
    aliases = {
        path: {
            alias.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for path in paths
    }
    assert findings(paths, {path: sorted((names[path] | aliases[path]) & POLICIES) for path in paths}) == {}


def test_files_are_named_for_what_they_are_about() -> None:
    assert [path for path in sources(*packages(), "tests") if {path.stem, path.parent.name} & EMPTY_NAMES] == []


def test_functions_are_small() -> None:
    lengths = sorted(length for path in sources(*packages()) for length in functions(path.read_text()))
    assert lengths[int(len(lengths) * 0.9)] <= LONGEST_FUNCTION_OF_MOST


def test_workflow_files_are_thin() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in sources("workflows")}
    assert {name: length for name, length in lengths.items() if length > LONGEST_WORKFLOW_FILE} == {}


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("domain", "from activities.post import PostActivities"),
        ("domain", "def decide():\n    import readmodel.queries"),
        ("activities", "from workflows import words"),
        ("evidence", "from executors.protocol import Execution"),
        ("api", "import worker.wiring"),
        ("domain", "from .run import Run"),
    ],
)
def test_an_import_that_points_up_is_noticed(package: str, source: str) -> None:
    assert upward(package, source)


@pytest.mark.parametrize(
    "source",
    ["import random", "import os.path", "from time import monotonic", "import temporalio", "now = datetime.now(UTC)"],
)
def test_what_is_not_pure_is_noticed(source: str) -> None:
    assert impure(source, DOMAIN_IMPORTS)


@pytest.mark.parametrize("source", ["import os\nos.environ['A']", "os.getenv('A')", "class S(BaseSettings): ..."])
def test_a_read_of_the_environment_is_noticed(source: str) -> None:
    assert environment_reads(source)
