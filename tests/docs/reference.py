"""Writes the tables of docs/reference.md from the code, so that they can't say anything else than it does.

`python -m tests.docs.reference` (or `scripts/reference`) rewrites what stands between `<!-- NAME -->` and
`<!-- end NAME -->`; a test compares.
"""

from __future__ import annotations

import ast
import inspect
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from api.app import create
from api.settings import Settings
from cli.main import app as command_line
from domain.http_request import HttpRequest
from domain.parameters import Parameter
from domain.pipeline import PipelineDefinition, Step
from domain.run import BLOCKING_REFUSALS, FINAL_STATES, REASONS, RunState
from domain.schedule import ScheduleDefinition
from tests.docs import meanings
from tests.docs.error_codes import refusals
from worker.settings import WorkerSettings

FILE = Path(__file__).parents[2] / "docs" / "reference.md"


def tables() -> dict[str, str]:
    """By the name of their marker."""
    return {
        "endpoints": _endpoints(),
        "commands": _commands(),
        "settings": _settings(),
        "schedule fields": _fields(ScheduleDefinition),
        "pipeline fields": _fields(PipelineDefinition),
        "parameter fields": _fields(Parameter),
        "step fields": _fields(Step),
        "request fields": _fields(HttpRequest),
        "states": _states(),
        "codes": _codes(),
    }


def written(text: str) -> str:
    """`text` with each of its tables as the code has it. Raises ValueError where a marker is missing."""
    for name, table in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"docs/reference.md does not have the markers of '{name}' once")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"
    return text


def _table(heads: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(cell: object) -> str:
    return " ".join(str(cell).split()).replace("|", "\\|")


def _endpoints() -> str:
    with tempfile.NamedTemporaryFile() as token:
        token.write(b"for-this-table-only")
        token.flush()
        document = create(Settings(database_url="postgresql+asyncpg://", token_file=Path(token.name))).openapi()
    rows = [
        (method.upper(), path, next(iter(operation["responses"])), operation.get("description", ""))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    prefix = "/api/v1/workspaces/{workspace}"
    return _table(
        ("request", "answers", "what it does"),
        ((f"`{method} {path.replace(prefix, '…')}`", status, said) for method, path, status, said in rows),
    )


def _commands() -> str:
    rows = ((f"`{_usage(name, command)}`", command.help) for name, command in _named(command_line))
    return _table(("command", "what it does"), rows)


def _named(app: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Each command; those of a group by both names."""
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        yield from [(f"{name} {one}", part) for one, part in inner.items()] if inner else [(name, command)]


def _usage(name: str, command: Any) -> str:
    """Arguments, then options; the ones that every command has are told once, above the table."""
    arguments = [
        f"{p.metavar or p.name.upper()}{'...' if p.nargs < 0 else ''}"
        for p in command.params
        if p.param_type_name == "argument"
    ]
    options = [
        max(p.opts, key=len) if p.is_flag else f"{max(p.opts, key=len)} …"
        for p in command.params
        if p.param_type_name == "option" and not {"--url", "--token-file", "--workspace", "--json"} & set(p.opts)
    ]
    return " ".join(["almanac", name, *arguments, *(f"[{option}]" for option in options)])


def _settings() -> str:
    said = _said(Settings) | _said(WorkerSettings)
    fields: dict[str, tuple[FieldInfo, str]] = {}
    for model, reader in ((WorkerSettings, "worker"), (Settings, "API")):
        for name, field in model.model_fields.items():
            readers = f"{fields[name][1]}, {reader}" if name in fields else reader
            fields[name] = (field, readers)
    return _table(
        ("variable", "read by", "default", "meaning"),
        ((f"`ALMANAC_{name.upper()}`", who, _default(field), said[name]) for name, (field, who) in fields.items()),
    )


def _fields(model: type[BaseModel]) -> str:
    said = _said(model)
    return _table(
        ("field", "type", "default", "meaning"),
        (
            (f"`{name}`", _type(field.annotation) + _range(field), _default(field), said[name])
            for name, field in model.model_fields.items()
        ),
    )


def _states() -> str:
    said = _docstrings(RunState)
    return _table(
        ("state", "", "meaning", "reasons"),
        (
            (
                f"`{state}`",
                "final" if state in FINAL_STATES else "open",
                said.get(state.name) or meanings.STATES[state],
                _reasons(state),
            )
            for state in RunState
        ),
    )


def _codes() -> str:
    return _table(
        ("code", "status", "says"),
        ((f"`{r.code}`", r.status, meanings.CODES.get(r.code) or r.says) for r in refusals().values()),
    )


def _reasons(state: RunState) -> str:
    blocking = BLOCKING_REFUSALS if state is RunState.NOT_STARTED else frozenset()
    return ", ".join(f"**`{reason}`**" if reason in blocking else f"`{reason}`" for reason in REASONS.get(state, ()))


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "-"
    if field.default is PydanticUndefined:
        return "required"
    default = field.default
    if default is None or default in ("", {}, ()):
        return "-"
    return f"`{default}`"


def _type(annotation: Any) -> str:
    """As an author of YAML or JSON thinks of it."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_type(part) for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is tuple:
        return f"list of {_type(get_args(annotation)[0])}"
    if get_origin(annotation) is dict:
        return "object"
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(annotation))
    if annotation is JsonValue:
        return "any JSON"
    if hasattr(annotation, "__members__"):
        return ", ".join(f"`{member}`" for member in annotation)
    names = {str: "text", int: "number", float: "number", Step: "step"}
    return names.get(annotation) or str(annotation.__name__)


def _range(field: FieldInfo) -> str:
    least = next((m.ge for m in field.metadata if hasattr(m, "ge")), None)
    most = next((m.le for m in field.metadata if hasattr(m, "le")), None)
    if least is None:
        return ""
    return f", at least {least}" if most is None else f", {least} to {most}"


def _said(model: type[BaseModel]) -> dict[str, str]:
    """What each field means, by the code where it says so."""
    prefix = f"{model.__name__}."
    here = {key.removeprefix(prefix): said for key, said in meanings.FIELDS.items() if key.startswith(prefix)}
    return here | _docstrings(model)


def _docstrings(cls: type) -> dict[str, str]:
    """The sentences below a class's attributes, by attribute."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for attribute, doc in zip(body.body, body.body[1:], strict=False):
        if not isinstance(doc, ast.Expr) or not isinstance(doc.value, ast.Constant):
            continue
        match attribute:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = str(doc.value.value)
    return found


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))
