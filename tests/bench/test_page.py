"""The page of the benchmarks says what was measured, and its pictures draw it to scale."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench import all as everything
from bench.all import BENCHES, Bench, Measured
from bench.pictures import Bar, bars

HERD = Bench("herd", "A herd", "How late.", ("--n", "7"))
FIGURES = {"n": 7, "almanac_p99_s": 2.0, "native_p99_s": 1.0}


def test_bars_are_to_scale() -> None:
    drawn = ElementTree.fromstring(bars("a < b", " s", [Bar("long", 4), Bar("short", 1)]))
    _, long, short = drawn.findall("{*}rect")
    assert float(long.attrib["width"]) == pytest.approx(4 * float(short.attrib["width"]), rel=0.01)


def test_a_picture_of_nothing_is_a_picture() -> None:
    assert ElementTree.fromstring(bars("nothing", "", [])).findtext("{*}title") == "nothing"


def test_the_page_has_each_figure_and_the_command_that_gives_it() -> None:
    page = everything.page([Measured(HERD, HERD.full, FIGURES, 60.0)])
    assert "python -m bench.herd --n 7" in page
    assert "| `almanac_p99_s` | 2.0 |" in page


def test_the_page_says_what_failed() -> None:
    assert "`python -m bench.herd --n 7` failed." in everything.page([Measured(HERD, HERD.full, None, 1.0)])


def test_the_herd_is_drawn_beside_its_anchor() -> None:
    picture = everything.pictures([Measured(HERD, HERD.full, FIGURES, 60.0)])["benchmarks-herd.svg"]
    labels = [text.text for text in ElementTree.fromstring(picture).findall("{*}text")]
    assert {"Almanac, 7", "Temporal Schedules, 7", "2 s", "1 s"} <= set(labels)


def test_the_page_shows_the_pictures_that_there_are() -> None:
    page = everything.page([Measured(HERD, HERD.full, FIGURES, 60.0)])
    assert "(benchmarks-herd.svg)" in page
    assert "(benchmarks-peer.svg)" not in page


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.title)
def test_each_bench_is_there(bench: Bench) -> None:
    assert (everything.DOCS.parent / "bench" / f"{bench.module}.py").exists()
