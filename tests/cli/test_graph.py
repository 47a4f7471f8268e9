"""Who waits for whom, drawn: the same arrows as a tree, as SVG and as mermaid."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from rich.console import Console

from cli import drawing
from cli.drawing import Graph
from domain.dependency import TerminalStatus
from domain.schedule import ScheduleView
from tests.cli.conftest import Terminal
from tests.readmodel.samples import schedule_view

SVG = "{http://www.w3.org/2000/svg}"


def view(schedule_id: str, *parents: str, **changes: object) -> ScheduleView:
    plain = schedule_view(schedule_id, name=f"market/{schedule_id}")
    definition = plain.definition.model_copy(update={"after_schedule_ids": parents or None, **changes})
    return plain.model_copy(update={"definition": definition})


DIAMOND = Graph.of(
    [
        view("gate", "left", "right", after_terminal_status=TerminalStatus.ANY_TERMINAL, after_delay_minutes=10),
        view("left", "close"),
        view("right", "close"),
        view("close"),
        view("tail", "gate", name='a "quoted" <name>'),
        view("alone"),
    ]
)


def test_every_column_is_right_of_what_it_waits_for() -> None:
    assert DIAMOND.columns() == [["close"], ["left", "right"], ["gate"], ["tail"]]
    assert Graph.of([]).columns() == []


def test_only_what_is_connected_is_drawn_around_one() -> None:
    others = [*DIAMOND.views.values(), view("x"), view("y", "x")]
    assert set(Graph.of(others, "left").views) == set(DIAMOND.views)
    assert set(Graph.of(others, "y").views) == {"x", "y"}


def test_a_tree_tells_what_waits_for_several_below_each_and_its_own_dependents_once() -> None:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(drawing.tree(DIAMOND))
    printed = capture.get()
    assert printed.count("market/gate  ") == 2
    assert printed.count('a "quoted" <name>') == 1
    assert "any end, +10 min  also after market/right" in printed
    assert "(as above)" in printed


def test_svg_has_a_box_for_each_and_an_arrow_for_each_and_is_whole() -> None:
    root = ElementTree.fromstring(drawing.svg(DIAMOND))
    boxes = root.findall(f"{SVG}rect")
    arrows = [path for path in root.findall(f"{SVG}path") if path.get("marker-end")]
    assert (len(boxes), len(arrows)) == (5, 5)
    assert 'a "quoted" <name>' in [text.text for text in root.findall(f"{SVG}text")]
    rights = [float(box.get("x", 0)) + float(box.get("width", 0)) for box in boxes]
    assert max(rights) < float(root.get("width", 0))
    spots = {(box.get("x"), box.get("y")) for box in boxes}
    assert len(spots) == len(boxes)
    ElementTree.fromstring(drawing.svg(Graph.of([])))


def test_mermaid_names_each_arrow_with_its_terms() -> None:
    drawn = drawing.mermaid(DIAMOND)
    assert drawn.startswith("flowchart LR\n")
    assert '  left -->|"any end, +10 min"| gate\n' in drawn
    assert "  close --> left\n" in drawn
    assert "#quot;quoted#quot;" in drawn


MANIFEST = """
kind: schedule
name: market/pulse
timezone: America/New_York
payload: {pipeline: p, version: current}
after: [market/close]
---
kind: schedule
name: market/close
cron: "10 16 * * MON-FRI"
timezone: America/New_York
payload: {pipeline: p, version: current}
---
kind: pipeline
name: p
steps:
  - {id: only, command: ["true"]}
"""


@pytest.mark.stack
async def test_files_name_parents_that_are_made_first(almanac: Terminal) -> None:
    path = almanac.write(MANIFEST)
    assert (await almanac("apply", "--dry-run", path)).code == 0
    applied = await almanac("apply", path, "--json")
    assert [(each["name"], each["result"]) for each in applied.json] == [
        ("p", "created"),
        ("market/close", "created"),
        ("market/pulse", "created"),
    ]
    again = await almanac("apply", path, "--json")
    assert {each["result"] for each in again.json} == {"unchanged"}

    graph = (await almanac("graph", "--json")).json
    assert [each["name"] for each in graph["schedules"]] == ["market/close", "market/pulse"]
    assert len(graph["arrows"]) == 1
    assert "by parents America/New_York" in (await almanac("graph", "market/close")).out
    drawn = almanac.folder / "graph.svg"
    await almanac("graph", "--svg", str(drawn))
    assert drawn.read_text().startswith("<svg")
    assert (await almanac("graph", "--mermaid")).out.startswith("flowchart LR\n")


@pytest.mark.stack
async def test_a_parent_that_is_nowhere_is_refused_where_it_is_written(almanac: Terminal) -> None:
    path = almanac.write(MANIFEST.replace("[market/close]", "[market/open]"))
    refused = await almanac("apply", path)
    assert refused.code == 1
    assert "all.yaml:6 " in refused.err
    assert "no schedule 'market/open'" in refused.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("after: []", "apply.after_invalid"),
        ("after: market/close", "apply.after_invalid"),
        ("after: [market/close]\nafter_schedule_ids: [saaaaaaaaaaaa]", "apply.after_ambiguous"),
    ],
)
async def test_parents_that_are_written_wrongly_change_nothing(almanac: Terminal, line: str, code: str) -> None:
    refused = await almanac("apply", almanac.write(MANIFEST.replace("after: [market/close]", line)))
    assert refused.code == 1
    assert code in refused.err
