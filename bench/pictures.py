"""Bars as SVG, for pages."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

WIDTH, LABEL, VALUE = 720, 250, 90
ROW, TOP = 26, 44
COLOURS = ("#3566b0", "#b8b8b8", "#d79b3c")


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    colour: int = 0
    """Which of the colours; the same for what belongs together."""


def bars(title: str, unit: str, rows: list[Bar]) -> str:
    """A picture of horizontal bars, each with its figure; the longest is as wide as there is room."""
    longest = max((row.value for row in rows), default=0) or 1
    height = TOP + ROW * len(rows) + 10
    drawn = "\n".join(_bar(row, number, longest, unit) for number, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="13">\n<title>{escape(title)}</title>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="12" y="24" font-size="15" font-weight="bold" fill="#222222">{escape(title)}</text>\n'
        f"{drawn}\n</svg>\n"
    )


def _bar(row: Bar, number: int, longest: float, unit: str) -> str:
    y = TOP + ROW * number
    width = max((WIDTH - LABEL - VALUE) * row.value / longest, 1)
    return (
        f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end" fill="#222222">{escape(row.label)}</text>\n'
        f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{ROW - 8}" fill="{COLOURS[row.colour]}"/>\n'
        f'<text x="{LABEL + width + 6:.1f}" y="{y + 13}" fill="#222222">{row.value:g}{escape(unit)}</text>'
    )
