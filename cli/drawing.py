"""Draws who waits for whom: as a tree for terminals, as SVG, and as mermaid. Layout is worked out here, so that nothing
has to be installed for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from domain.dependency import TerminalStatus
from domain.schedule import Condition, ScheduleDefinition, ScheduleView

STYLES = {
    Condition.ACTIVE: "green",
    Condition.PAUSED: "yellow",
    Condition.BLOCKED: "bold red",
    Condition.DELETED: "bright_black",
}
COLOURS = {
    Condition.ACTIVE: "#2e7d32",
    Condition.PAUSED: "#b58900",
    Condition.BLOCKED: "#c62828",
    Condition.DELETED: "#9e9e9e",
}
CHARACTER = 7.2
"""How wide a character of the drawing's font is, at most."""
HEIGHT, GAP, BETWEEN = 44, 18, 90
"""Of a box, between boxes of a column, and between columns, in pixels."""


@dataclass(frozen=True)
class Graph:
    """The schedules by id, with the arrows between those that are here."""

    views: Mapping[str, ScheduleView]

    @classmethod
    def of(cls, views: Sequence[ScheduleView], around: str | None = None) -> Graph:
        """All schedules that wait or are waited for; with `around` only those connected with it, and it."""
        whole = cls({view.schedule_id: view for view in views})
        if around is not None:
            return cls({each: whole.views[each] for each in whole.connected(around)})
        linked = {end for arrow in whole.arrows for end in arrow}
        return cls({each: view for each, view in whole.views.items() if each in linked})

    def parents(self, schedule_id: str) -> tuple[str, ...]:
        return tuple(each for each in self.views[schedule_id].definition.parents if each in self.views)

    def children(self, schedule_id: str) -> tuple[str, ...]:
        return tuple(each for each in self.views if schedule_id in self.parents(each))

    @property
    def arrows(self) -> list[tuple[str, str]]:
        return [(parent, each) for each in self.views for parent in self.parents(each)]

    def connected(self, schedule_id: str) -> list[str]:
        found, wanted = {schedule_id}, [schedule_id]
        while wanted:
            each = wanted.pop()
            near = {*self.parents(each), *self.children(each)} - found
            found |= near
            wanted += near
        return [each for each in self.views if each in found]

    def columns(self) -> list[list[str]]:
        """Each schedule right of all that it waits for, and near them in height."""
        depth: dict[str, int] = {}

        def depth_of(schedule_id: str) -> int:
            if schedule_id not in depth:
                depth[schedule_id] = 0
                depth[schedule_id] = max((depth_of(parent) + 1 for parent in self.parents(schedule_id)), default=0)
            return depth[schedule_id]

        columns: list[list[str]] = []
        for each in sorted(self.views, key=lambda each: (depth_of(each), self.views[each].definition.name)):
            columns += [[]] * (depth[each] + 1 - len(columns))
            columns[depth[each]] = [*columns[depth[each]], each]
        row = {each: number for number, each in enumerate(columns[0])} if columns else {}
        for number, column in enumerate(columns[1:], start=1):
            columns[number] = sorted(column, key=lambda each: self._height(each, row))
            row |= {each: place for place, each in enumerate(columns[number])}
        return columns

    def _height(self, schedule_id: str, row: Mapping[str, int]) -> float:
        parents = self.parents(schedule_id)
        return sum(row[parent] for parent in parents) / len(parents)


def when(definition: ScheduleDefinition) -> str:
    return f"{definition.cron or 'by parents'} {definition.timezone}"


def terms(definition: ScheduleDefinition) -> str:
    """What it demands of its parents beside that they succeed."""
    any_end = "any end" if definition.after_terminal_status is TerminalStatus.ANY_TERMINAL else ""
    delay = f"+{definition.after_delay_minutes} min" if definition.after_delay_minutes else ""
    until = f"until {definition.dependency_deadline}" if definition.dependency_deadline else ""
    return ", ".join(part for part in (any_end, delay, until) if part)


def tree(graph: Graph) -> RenderableType:
    """From those that wait for nobody to those that wait for them. What waits for several is below each of them, and
    what waits for it is told once."""
    if not graph.views:
        return Text("No schedule waits for another.")
    told: set[str] = set()
    trees = []
    for each in graph.views:
        if not graph.parents(each):
            root = Tree(_label(graph, each))
            _grow(graph, root, each, told)
            trees.append(root)
    return Group(*trees)


def _grow(graph: Graph, tree: Tree, schedule_id: str, told: set[str]) -> None:
    for child in graph.children(schedule_id):
        label = _label(graph, child, beside=schedule_id)
        if child in told and graph.children(child):
            label.append("  (as above)", "bright_black")
        branch = tree.add(label)
        if child not in told:
            told.add(child)
            _grow(graph, branch, child, told)


def _label(graph: Graph, schedule_id: str, beside: str | None = None) -> Text:
    view = graph.views[schedule_id]
    label = Text.assemble(view.definition.name, f"  {when(view.definition)}  ")
    label.append(view.condition.value, STYLES[view.condition])
    if beside is not None and terms(view.definition):
        label.append(f"  {terms(view.definition)}", "cyan")
    others = [graph.views[each].definition.name for each in graph.parents(schedule_id) if each != beside]
    if beside is not None and others:
        label.append(f"  also after {', '.join(others)}", "bright_black")
    return label


def mermaid(graph: Graph) -> str:
    lines = ["flowchart LR"]
    for each, view in graph.views.items():
        text = f"{view.definition.name}<br/>{when(view.definition)}".replace('"', "#quot;")
        lines.append(f'  {each}["{text}"]')
    for parent, each in graph.arrows:
        said = terms(graph.views[each].definition)
        lines.append(f'  {parent} -->|"{said}"| {each}' if said else f"  {parent} --> {each}")
    return "\n".join(lines) + "\n"


def svg(graph: Graph) -> str:
    columns = graph.columns()
    places: dict[str, tuple[float, float, float]] = {}
    left = GAP
    for column in columns:
        width = max(_width(graph.views[each].definition) for each in column)
        for number, each in enumerate(column):
            places[each] = (left, GAP + number * (HEIGHT + GAP), width)
        left += round(width) + BETWEEN
    total = (left - BETWEEN + GAP if columns else 2 * GAP, GAP + max(map(len, columns), default=0) * (HEIGHT + GAP))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total[0]:.0f}" height="{total[1]:.0f}" '
        'font-family="ui-monospace, monospace" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
        *(_arrow(places[parent], places[each], terms(graph.views[each].definition)) for parent, each in graph.arrows),
        *(_box(places[each], view) for each, view in graph.views.items()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _width(definition: ScheduleDefinition) -> float:
    return CHARACTER * max(len(definition.name), len(when(definition))) + 20


def _box(place: tuple[float, float, float], view: ScheduleView) -> str:
    left, top, width = place
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="6" fill="#fff" '
        f'stroke="{COLOURS[view.condition]}" stroke-width="1.5"><title>{escape(view.schedule_id)}: '
        f"{view.condition.value}</title></rect>"
        f'<text x="{left + 10:.0f}" y="{top + 18:.0f}" font-weight="bold">{escape(view.definition.name)}</text>'
        f'<text x="{left + 10:.0f}" y="{top + 35:.0f}" fill="#555">{escape(when(view.definition))}</text>'
    )


def _arrow(start: tuple[float, float, float], end: tuple[float, float, float], said: str) -> str:
    from_x, from_y = start[0] + start[2], start[1] + HEIGHT / 2
    to_x, to_y = end[0], end[1] + HEIGHT / 2
    bend = (to_x - from_x) / 2
    path = (
        f'<path d="M{from_x:.0f} {from_y:.0f}C{from_x + bend:.0f} {from_y:.0f} {to_x - bend:.0f} {to_y:.0f} '
        f'{to_x:.0f} {to_y:.0f}" fill="none" stroke="#555" marker-end="url(#arrow)">'
    )
    return f"{path}<title>{escape(said or 'succeeded')}</title></path>"
