"""Reads pipelines and schedules from YAML files: each document's `kind`, its fields, and where every line is.

Scalars are read as JSON would: only `true`, `false`, `null` and numbers are special, so that `17:30`, `on` and a
date stay the words they are.

In the command and the environment of a step `${manifest_dir}` stands for the folder of the file, because programs and
data that lie beside it have another path on every machine. It is expanded here: a worker has to see the same path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from domain import pipeline, schedule_check
from domain.errors import AlmanacError, Invalid
from domain.names import name_key
from domain.pipeline import PipelineDefinition, Step
from domain.reading import read
from domain.schedule import ScheduleDefinition

KINDS: dict[str, type[PipelineDefinition | ScheduleDefinition]] = {
    "pipeline": PipelineDefinition,
    "schedule": ScheduleDefinition,
}

MANIFEST_DIR = "${manifest_dir}"

AFTER = "after"
"""The field of a schedule's document that names its parents."""

SUFFIXES = frozenset({".yaml", ".yml"})

Definition = PipelineDefinition | ScheduleDefinition


@dataclass(frozen=True)
class Place:
    """Where a document, or one of its fields, is."""

    file: Path
    document: int
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} (document {self.document})"


@dataclass(frozen=True)
class Manifest:
    """One document, read and found right in itself."""

    place: Place
    node: yaml.Node
    kind: str
    definition: Definition
    after: tuple[str, ...] = ()
    """The names of a schedule's parents, which its definition has where their ids will be."""

    def place_of(self, field: str | None) -> Place:
        """Where this field of it is written, or the nearest part above that is."""
        return _place_of(self.place, self.node, field)


@dataclass(frozen=True)
class Mistake:
    place: Place
    refusal: AlmanacError


def read_all(paths: Iterable[Path]) -> tuple[list[Manifest], list[Mistake]]:
    """All documents of the files, and of the YAML files anywhere below the folders; and what is wrong with others."""
    manifests: list[Manifest] = []
    mistakes: list[Mistake] = []
    for path in paths:
        for file in _files(path):
            for found in _documents(file):
                if isinstance(found, Mistake):
                    mistakes.append(found)
                else:
                    manifests.append(found)
    return manifests, [*mistakes, *_doubled(manifests)]


class _Loader(yaml.SafeLoader):
    """Plain scalars by JSON's rules, and no key twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key is not a word", key.start_mark)
            if key.value in seen:
                raise ConstructorError(None, None, f"the key '{key.value}' is there twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:null|~|)$"), ["n", "~", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]*)$"), list("-0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+][0-9]+)$"),
    list("-0123456789"),
)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def _documents(file: Path) -> Iterator[Manifest | Mistake]:
    number = 0
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        while loader.check_node():
            number += 1
            node = loader.get_node()
            assert node is not None
            place = Place(file, number, node.start_mark.line + 1)
            if node.tag == "tag:yaml.org,2002:null":
                continue
            yield _manifest(place, node, loader.construct_document(node))
    except (OSError, UnicodeDecodeError) as error:
        yield Mistake(Place(file, 0, 1), Invalid("apply.file_unreadable", f"The file can't be read: {error}."))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        # What follows a broken document can't be told from it.
        mark = getattr(error, "problem_mark", None)
        place = Place(file, max(number, 1), mark.line + 1 if mark else 1)
        said = getattr(error, "problem", None) or str(error)
        starred = getattr(error, "context", None) == "while scanning an alias"
        hint = "Put a value that begins with * into quotes." if starred else None
        yield Mistake(place, Invalid("apply.not_yaml", f"This is not YAML as read here: {said}.", hint=hint))


def _manifest(place: Place, node: yaml.Node, document: Any) -> Manifest | Mistake:
    try:
        kind = _kind(document)
        fields = {key: value for key, value in document.items() if key not in ("kind", AFTER)}
        after = _after(document) if kind == "schedule" and AFTER in document else ()
        if after:
            fields["after_schedule_ids"] = after
        elif AFTER in document:
            fields[AFTER] = document[AFTER]
        definition = _check(_located(read(KINDS[kind], _json(fields)), place.file.parent))
        return Manifest(place, node, kind, definition, after)
    except AlmanacError as refusal:
        return Mistake(_place_of(place, node, refusal.field), refusal)


def _after(document: dict[str, Any]) -> tuple[str, ...]:
    """The parents by name: in files ids are not known, for the schedules may not be there yet."""
    names = document[AFTER]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise Invalid("apply.after_invalid", "`after` is a list of names of schedules.", field=AFTER)
    if document.get("after_schedule_ids") is not None or document.get("after_schedule_id") is not None:
        raise Invalid(
            "apply.after_ambiguous",
            "The parents are given by name and by id.",
            field=AFTER,
            hint="Keep one of the two.",
        )
    return tuple(names)


def _kind(document: Any) -> str:
    if not isinstance(document, dict):
        raise Invalid("apply.not_an_object", "A document is fields with values, and this is something else.")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Invalid("apply.kind_unknown", f"The kind is {kind!r}; known are {' and '.join(KINDS)}.", field="kind")
    return kind


def _json(fields: dict[Any, Any]) -> str:
    try:
        return json.dumps(fields, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid("apply.not_json", f"A value has no form in JSON: {error}.") from error


def _located(definition: Definition, folder: Path) -> Definition:
    """The definition with the folder's absolute path where its steps name it. Nothing else of the form `${...}` is
    touched: it may mean something to the program."""
    if not isinstance(definition, PipelineDefinition):
        return definition
    path = str(folder.resolve())

    def here(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(step.model_copy(update=_replaced(step, path)) for step in steps)

    return definition.model_copy(update={"steps": here(definition.steps), "evaluation": here(definition.evaluation)})


def _replaced(step: Step, path: str) -> dict[str, Any]:
    return {
        "command": step.command and tuple(word.replace(MANIFEST_DIR, path) for word in step.command),
        "environment": {name: value.replace(MANIFEST_DIR, path) for name, value in step.environment.items()},
    }


def _check(definition: Definition) -> Definition:
    """What can be known without a server, so that a folder with a mistake changes nothing at all."""
    if isinstance(definition, PipelineDefinition):
        pipeline.check(definition)
        return definition
    return schedule_check.check(definition)


def _doubled(manifests: list[Manifest]) -> Iterator[Mistake]:
    first: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        key = (manifest.kind, name_key(manifest.definition.name))
        earlier = first.setdefault(key, manifest)
        if earlier is not manifest:
            said = f"The {manifest.kind} '{manifest.definition.name}' is also at {earlier.place}."
            yield Mistake(manifest.place_of("name"), Invalid("apply.name_duplicate", said, field="name"))


def _place_of(place: Place, node: yaml.Node, field: str | None) -> Place:
    line = place.line
    for part in field.split(".") if field else ():
        found = _child(node, part)
        if found is None:
            break
        line, node = found
    return Place(place.file, place.document, line)


def _child(node: yaml.Node, part: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        pairs = ((key, value) for key, value in node.value if key.value == part)
        return next(((key.start_mark.line + 1, value) for key, value in pairs), None)
    if isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
        child = node.value[int(part)]
        return child.start_mark.line + 1, child
    return None
