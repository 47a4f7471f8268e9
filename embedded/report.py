"""What `almanac up` tells while it starts, runs and stops: calm aligned lines for people, JSON lines for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.panel import Panel
from rich.status import Status
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a started Almanac is found."""

    ui: str
    api: str
    token_file: str
    data: str


class Report(Protocol):
    """The moments worth telling. `seconds` is how long the step took."""

    def note(self, text: str) -> None: ...
    def starting(self, part: str) -> None: ...
    def ready(self, part: str, address: str, seconds: float) -> None: ...
    def trouble(self, part: str, text: str) -> None: ...
    def stopping(self, part: str) -> None: ...
    def stopped(self, part: str, seconds: float) -> None: ...
    def complete(self, endpoints: Endpoints) -> None: ...


class Board:
    """For people: one line per part, the one in progress with a spinner where the terminal has one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def note(self, text: str) -> None:
        self._console.print(Text(f"  · {text}", style="yellow"), soft_wrap=True)

    def starting(self, part: str) -> None:
        self._spin(f"{part:<12}starting")

    def ready(self, part: str, address: str, seconds: float) -> None:
        self._row("✓", "green", part, "ready", address, seconds)

    def trouble(self, part: str, text: str) -> None:
        self._rest()
        self._console.print(Text.assemble(("  ! ", "red"), f"{part:<12}", text), soft_wrap=True)

    def stopping(self, part: str) -> None:
        self._spin(f"{part:<12}stopping")

    def stopped(self, part: str, seconds: float) -> None:
        self._row("■", "dim", part, "stopped", "", seconds)

    def complete(self, endpoints: Endpoints) -> None:
        self._rest()
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        table.add_row("Temporal UI", endpoints.ui)
        table.add_row("API", endpoints.api)
        table.add_row("Token", near(Path(endpoints.token_file)))
        table.add_row("Data", near(Path(endpoints.data)))
        table.add_row("Try", "almanac list")
        self._console.print(Panel(table, title="Almanac is up", subtitle="Ctrl-C stops it", expand=False))

    def _row(self, mark: str, style: str, part: str, state: str, address: str, seconds: float) -> None:
        self._rest()
        line = Text.assemble((f"  {mark} ", style), f"{part:<12}{state:<9}", f"{address:<38}", f"{seconds:6.1f} s")
        self._console.print(line, soft_wrap=True)

    def _spin(self, text: str) -> None:
        self._rest()
        self._status = self._console.status(text)
        self._status.start()

    def _rest(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class JsonLines:
    """For programs: one JSON object a line, `event` first; `ready` carries the endpoints."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, text: str) -> None:
        self._say("note", text=text)

    def starting(self, part: str) -> None:
        self._say("part", part=part, state="starting")

    def ready(self, part: str, address: str, seconds: float) -> None:
        self._say("part", part=part, state="ready", address=address, seconds=round(seconds, 3))

    def trouble(self, part: str, text: str) -> None:
        self._say("trouble", part=part, text=text)

    def stopping(self, part: str) -> None:
        self._say("part", part=part, state="stopping")

    def stopped(self, part: str, seconds: float) -> None:
        self._say("part", part=part, state="stopped", seconds=round(seconds, 3))

    def complete(self, endpoints: Endpoints) -> None:
        self._say("ready", **asdict(endpoints))

    def _say(self, event: str, **facts: Any) -> None:
        print(json.dumps({"event": event, **facts}), file=self._console.file, flush=True)


def near(path: Path) -> str:
    """The path as one would type it here: relative below the current folder, else absolute."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
