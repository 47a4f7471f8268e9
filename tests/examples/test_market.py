"""The market-day pair: the figures are right, bad trades are refused, and the page is made from the latest close."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.steps import EXAMPLES, RunFolder

TRADES = """\
time,symbol,price,size
2026-03-06T09:30:00.000-05:00,A,10.00,100
2026-03-06T10:00:00.000-05:00,B,5.00,10
2026-03-06T12:00:00.000-05:00,A,12.00,300
2026-03-06T15:00:00.000-05:00,A,9.00,100
2026-03-06T15:59:59.000-05:00,A,11.00,500
"""


@pytest.fixture
def trades(tmp_path: Path) -> Path:
    file = tmp_path / "day.csv"
    file.write_text(TRADES)
    return file


def close(storage: Path, number: int, *, completed_at: str | None, status: str | None = "succeeded") -> RunFolder:
    """A run of market/close, with what its folder says of it."""
    folder = RunFolder(storage / "market" / "close" / "runs" / f"iteration-{number}-sched")
    folder.work.mkdir(parents=True)
    metadata = {"status": status, "completed_at": completed_at}
    (folder.path / "run_metadata.json").write_text(json.dumps(metadata))
    return folder


def pulse(storage: Path) -> RunFolder:
    return RunFolder(storage / "market" / "pulse" / "runs" / "iteration-1-sched")


def test_the_trades_are_those_that_the_generator_makes() -> None:
    made = subprocess.run([sys.executable, str(EXAMPLES / "market/make_trades.py")], capture_output=True, check=True)
    assert made.stdout == (EXAMPLES / "market/trades.csv").read_bytes()


def test_the_figures_of_a_day(tmp_path: Path, trades: Path) -> None:
    run = RunFolder(tmp_path / "run")
    ended = run.step("market/figures.py", trades)
    assert ended.returncode == 0, ended.stderr
    day = json.loads((run.work / "figures.json").read_text())
    assert (day["trading_day"], day["run_id"]) == ("2026-03-06", "r-1")
    # (1000 + 3600 + 900 + 5500) / 1000
    assert day["symbols"]["A"] == {
        "open": "10.00",
        "high": "12.00",
        "low": "9.00",
        "close": "11.00",
        "volume": 1000,
        "vwap": "11.00",
        "trades": 4,
    }
    assert day["symbols"]["B"]["vwap"] == "5.00"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,symbol,price,size\n", "holds no trades"),
        (TRADES.replace("09:30", "16:30"), "comes after"),
        (TRADES + "2026-03-07T09:30:00.000-05:00,A,10.00,100\n", "more than one day"),
        (TRADES.replace("12.00,300", "twelve,300"), "day.csv:4: not a trade"),
        (TRADES.replace("12.00,300", "12.00,-300"), "day.csv:4: price and size"),
        (TRADES.replace(",size", ""), "day.csv:2: not a trade"),
    ],
)
def test_trades_that_make_no_sense_are_refused(tmp_path: Path, trades: Path, text: str, said: str) -> None:
    trades.write_text(text)
    ended = RunFolder(tmp_path / "run").step("market/check.py", trades)
    assert ended.returncode == 1
    assert said in ended.stderr


def test_the_page_is_of_the_close_that_ended_last_whatever_its_number(tmp_path: Path, trades: Path) -> None:
    latest = close(tmp_path, 1, completed_at="2026-03-06T21:10:00Z")
    assert latest.step("market/figures.py", trades).returncode == 0
    close(tmp_path, 2, completed_at="2026-03-05T21:10:00Z")
    close(tmp_path, 3, completed_at="2026-03-06T22:00:00Z", status="failed")
    close(tmp_path, 4, completed_at=None, status=None)

    run = pulse(tmp_path)
    ended = run.step("market/page.py")

    assert ended.returncode == 0, ended.stderr
    assert "from iteration-1-sched" in ended.stdout
    assert "+10.00 %" in (run.work / "pulse.txt").read_text()
    assert "Market pulse, 2026-03-06" in (run.work / "pulse.html").read_text()


def test_without_a_close_there_is_no_page(tmp_path: Path) -> None:
    close(tmp_path, 1, completed_at="2026-03-06T21:10:00Z", status="failed")
    ended = pulse(tmp_path).step("market/page.py")
    assert (ended.returncode, "No close has succeeded yet" in ended.stderr) == (1, True)
