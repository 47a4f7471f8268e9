"""`almanac occurrences --batch`: questions about occurrences, one JSON object a line in and one a line out.

    in   {"id": 1, "expr": "30 2 * * *", "tz": "America/New_York", "after": "2027-03-13T12:00:00Z", "count": 1}
    out  {"id": 1, "occurrences": [{"at": "2027-03-14T07:00:00Z", "nominal": ["2027-03-14T02:30"], "kind": "gap"}]}
    out  {"id": 2, "error": {"code": "schedule.validation.cron_never", "message": "..."}}

Every line gets exactly one answer, in order and at once; a line that makes no sense gets an error and the rest go on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn, TextIO

import typer

from domain.cron import parse
from domain.errors import Invalid
from domain.occurrences import Occurrence, upcoming
from domain.zones import load

MAX_COUNT = 10_000
_KEYS = ("id", "expr", "tz", "after", "count")


def run_batch(lines: Iterable[str]) -> Iterator[str]:
    """One answer (a line without its end) for each line, each given before the next line is read."""
    for line in lines:
        yield json.dumps(_answer(line), separators=(", ", ": "))


def occurrences(
    batch: Annotated[bool, typer.Option("--batch", help="Answer JSON lines from standard input.")] = False,
) -> None:
    """Compute occurrences in bulk: JSON lines in, JSON lines out."""
    if not batch:
        raise typer.BadParameter("give --batch and write one JSON object a line to standard input")
    try:
        # Bytes that are no UTF-8 spoil their own line, not the stream.
        serve(TextIOWrapper(sys.stdin.buffer, "utf-8", errors="surrogateescape", newline="\n"), sys.stdout)
    except BrokenPipeError:
        # The reader has gone, as `head` does: what is still buffered must not be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def serve(source: TextIO, answers: TextIO) -> None:
    """Answers every line of `source` as soon as it is there, until it ends."""
    for answer in run_batch(source):
        answers.write(answer + "\n")
        answers.flush()


def _answer(line: str) -> dict[str, Any]:
    try:
        question = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _error(None, "batch.not_json", "The line is not a JSON object.")
    if not isinstance(question, dict):
        return _error(None, "batch.not_json", f"The line is a JSON {type(question).__name__}, not an object.")
    name = question.get("id")
    if isinstance(name, bool) or not isinstance(name, str | int | None):
        return _error(None, "batch.id", "`id` is not text or a whole number.")
    missing = [key for key in _KEYS if key not in question]
    if missing:
        return _error(name, "batch.missing", f"The line has no `{'`, `'.join(missing)}`.")
    try:
        found = _found(question)
    except Invalid as refusal:
        message = f"{refusal.message} {refusal.hint}" if refusal.hint else refusal.message
        return _error(name, refusal.code, message)
    return {"id": name, "occurrences": [_shown(occurrence) for occurrence in found]}


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _found(question: dict[str, Any]) -> list[Occurrence]:
    count = question["count"]
    if type(count) is not int or not 0 <= count <= MAX_COUNT:
        raise Invalid("batch.count", f"`count` is not a whole number from 0 to {MAX_COUNT}.")
    return upcoming(parse(question["expr"]), load(question["tz"]), _after(question["after"]), limit=count)


def _after(text: object) -> datetime:
    if not isinstance(text, str):
        raise Invalid("batch.after", "`after` is not text.", hint="Write it as `2027-03-13T12:00:00Z`.")
    try:
        after = datetime.fromisoformat(text)
    except ValueError:
        after = None
    if after is None or after.tzinfo is None:
        raise Invalid("batch.after", "`after` is no instant.", hint="Write it as `2027-03-13T12:00:00Z`.")
    return after


def _shown(occurrence: Occurrence) -> dict[str, Any]:
    return {
        "at": occurrence.at.replace(tzinfo=None).isoformat() + "Z",
        "nominal": [time.isoformat(timespec="minutes") for time in occurrence.nominal],
        "kind": occurrence.kind,
    }


def _error(name: object, code: str, message: str) -> dict[str, Any]:
    return {"id": name, "error": {"code": code, "message": message}}
