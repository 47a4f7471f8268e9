"""What the steps of a run print, line by line: all of it, the last lines, or as it comes until the run has ended.

    extract   │ 214 rows
    load      ! table is locked, waiting

`!` stands before what went to stderr. A step that was tried again is `load#2` from its second attempt on. Of a flood of
output the first and the last part are kept; between them stands how much was left out.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from typing import Annotated

import typer
from rich.console import Console
from rich.style import Style

from cli.client import Refused, segment
from cli.command import Session, console
from cli.find import run_meant
from cli.runs import POLL_SECONDS, RunId
from cli.tables import STATE_STYLES
from domain.run import Run
from evidence.logs import Log, Stream

PIECE = 1 << 20
LONGEST_LINE = 1 << 16
"""What goes on for longer is broken, so that a program that ends no line is seen nevertheless."""

COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")
COLOUR_CODE = re.compile(r"(\x1b\[[0-9;]*m)")


def logs(
    session: Session,
    run_id: RunId,
    *,
    step: Annotated[str | None, typer.Option(help="Only this step, without its name before each line.")] = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="Only what went to stderr.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Begin with so many last lines of each stream.")] = None,
) -> None:
    """Show what the steps of a run printed, the earliest first; with --follow as it comes."""
    path = f"/runs/{run_meant(run_id)}"
    reading = _Reading(session, path, step, Stream.STDERR if stderr else None, tail)
    show: _Show = _as_json if session.json else _Screen(console(), named=step is None)
    run = Run.model_validate(session.client.get(path))
    while follow and not run.is_final:
        reading.show_new(show, waits=True)
        time.sleep(POLL_SECONDS)
        run = Run.model_validate(session.client.get(path))
    # The run is read first: all that was printed before its end is then there.
    reading.show_new(show, waits=False)
    reading.show_rest(show)
    if step is not None and not reading.logs:
        raise _no_such_step(run, step)
    if not session.json:
        _say_state(run, bool(reading.logs))


_Show = Callable[[Log, bytes], None]


@dataclass
class _Tape:
    """How far one file has been shown."""

    log: Log
    at: int = 0
    rest: bytes = b""
    """The beginning of a line whose end has not come yet."""


@dataclass
class _Reading:
    """All files of a run that are shown, which become more while it goes on."""

    session: Session
    run_path: str
    step: str | None
    stream: Stream | None
    tail: int | None
    logs: dict[str, _Tape] = field(default_factory=dict)

    def show_new(self, show: _Show, *, waits: bool) -> None:
        """Whatever was printed since. `waits` where there may be no folder yet."""
        try:
            found = self.session.client.get(f"{self.run_path}/logs")["items"]
        except Refused as refusal:
            if waits and refusal.code == "run.no_folder":
                return
            raise
        for log in map(Log.model_validate, found):
            if self.step in (None, log.step_id) and self.stream in (None, log.stream):
                self._show_log(log, show)
        # Only what was there at the beginning has lines that are too old.
        self.tail = None
        sys.stdout.flush()

    def show_rest(self, show: _Show) -> None:
        """Last lines that nobody ended."""
        for tape in self.logs.values():
            if tape.rest:
                show(tape.log, tape.rest)
                tape.rest = b""

    def _show_log(self, log: Log, show: _Show) -> None:
        tape = self.logs.get(log.path)
        if tape is None:
            tape = self.logs[log.path] = _Tape(log, self._begin(log))
        while tape.at < log.bytes:
            piece = self._read(log, tape.at, min(log.bytes, tape.at + PIECE))
            if not piece:
                return
            tape.at += len(piece)
            *lines, tape.rest = (tape.rest + piece).split(b"\n")
            for line in lines:
                show(log, line)
            while len(tape.rest) > LONGEST_LINE:
                show(log, tape.rest[:LONGEST_LINE])
                tape.rest = tape.rest[LONGEST_LINE:]

    def _begin(self, log: Log) -> int:
        """Where the last lines that are wanted begin."""
        if self.tail is None:
            return 0
        start, end = log.bytes, b""
        while start > 0:
            before = max(0, start - PIECE)
            end = self._read(log, before, start) + end
            start = before
            lines = end.removesuffix(b"\n").split(b"\n")
            if len(lines) > self.tail:
                wanted = b"\n".join(lines[len(lines) - self.tail :]) if self.tail else b""
                return log.bytes - len(wanted) - (1 if end.endswith(b"\n") and self.tail else 0)
        return 0

    def _read(self, log: Log, start: int, end: int) -> bytes:
        return b"".join(self.session.client.download(f"{self.run_path}/files/{segment(log.path)}", start, end))


class _Screen:
    """Lines for people: each step in a colour of its own, with the programs' own colours and no other control codes."""

    def __init__(self, screen: Console, *, named: bool) -> None:
        self._colours = screen.color_system is not None
        self._named = named
        self._styles: dict[str, Style] = {}
        self._next = cycle(COLOURS)
        self._width = 0

    def __call__(self, log: Log, line: bytes) -> None:
        text = printable(line.decode(errors="replace"), colours=self._colours)
        sys.stdout.write(f"{self._name(log) if self._named else ''}{text}\n")

    def _name(self, log: Log) -> str:
        name = log.step_id if log.attempt == 1 else f"{log.step_id}#{log.attempt}"
        self._width = max(self._width, len(name))
        return f"{self._coloured(name, log.step_id)}{' ' * (self._width - len(name))} {self._bar(log)} "

    def _coloured(self, name: str, step_id: str) -> str:
        if not self._colours:
            return name
        if step_id not in self._styles:
            self._styles[step_id] = Style.parse(next(self._next))
        return self._styles[step_id].render(name)

    def _bar(self, log: Log) -> str:
        if log.stream is Stream.STDOUT:
            return "│"
        return Style.parse("bold red").render("!") if self._colours else "!"


def _as_json(log: Log, line: bytes) -> None:
    said = {"step": log.step_id, "attempt": log.attempt, "stream": log.stream, "line": line.decode(errors="replace")}
    sys.stdout.write(f"{json.dumps(said, ensure_ascii=False)}\n")


def printable(line: str, *, colours: bool) -> str:
    """Without what would move the cursor or do worse. Of a line that was written over, what it said last."""
    shown = line.rstrip("\r").rpartition("\r")[2]
    parts = COLOUR_CODE.split(shown)
    coloured = colours and len(parts) > 1
    plain = ["".join(c for c in text if c.isprintable() or c == "\t") for text in parts[::2]]
    if not coloured:
        return "".join(plain)
    codes = [*parts[1::2], "\x1b[0m"]
    return "".join(text + code for text, code in zip(plain, codes, strict=True))


def _no_such_step(run: Run, step: str) -> Refused:
    return Refused(
        {
            "status": 404,
            "code": "run.step_not_found",
            "detail": f"No step '{step}' of the run {run.run_id} has begun.",
            "hint": f"'almanac logs {run.run_id}' shows all that did.",
        }
    )


def _say_state(run: Run, printed: bool) -> None:
    """To stderr, so that stdout has what the steps printed and nothing else."""
    screen = Console(stderr=True, highlight=False)
    said = f"{run.state.value} ({run.reason})" if run.reason else run.state.value
    screen.print(
        f"{'' if printed else 'No output. '}{run.run_id} {said}", style=STATE_STYLES[run.state], soft_wrap=True
    )
