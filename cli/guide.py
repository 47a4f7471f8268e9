"""`almanac guide`: the page for whoever writes steps, printed so that people and agents have it where they work."""

from __future__ import annotations

from pathlib import Path

import typer

PAGE = Path(__file__).with_name("guide.md")


def guide() -> None:
    """Print the guide for authors of steps: where a run's files are, and how to find the current and the latest run."""
    typer.echo(PAGE.read_text(encoding="utf-8"), nl=False)
