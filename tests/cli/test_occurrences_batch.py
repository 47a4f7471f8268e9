"""The batch: one answer a line, in order, at once, whatever the line is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.occurrences import run_batch

ROOT = Path(__file__).parents[2]
COMMAND = [
    sys.executable,
    "-c",
    "import typer; from cli.occurrences import occurrences; typer.run(occurrences)",
    "--batch",
]
GOOD = {"id": 1, "expr": "0,30 2 * * *", "tz": "America/New_York", "after": "2027-03-13T12:00:00Z", "count": 2}
ANSWER = {
    "id": 1,
    "occurrences": [
        {"at": "2027-03-14T07:00:00Z", "nominal": ["2027-03-14T02:00", "2027-03-14T02:30"], "kind": "gap"},
        {"at": "2027-03-15T06:00:00Z", "nominal": ["2027-03-15T02:00"], "kind": "ordinary"},
    ],
}


def _answers(*lines: str) -> list[Any]:
    return [json.loads(answer) for answer in run_batch(lines)]


def _asked(**changed: object) -> Any:
    return _answers(json.dumps({**GOOD, **changed}))[0]


def test_a_question_is_answered() -> None:
    assert _asked() == ANSWER


def test_kinds_are_those_of_occurrences() -> None:
    answer = _asked(expr="30 1 * * *", after="2027-11-07T00:00:00+00:00", count=1)
    assert answer["occurrences"][0]["kind"] == "overlap"


@pytest.mark.parametrize(
    ("line", "name", "code"),
    [
        ("", None, "batch.not_json"),
        ("{", None, "batch.not_json"),
        ("[" * 100_000, None, "batch.not_json"),
        ('{"id": NaN}', None, "batch.not_json"),
        ("[1]", None, "batch.not_json"),
        ("null", None, "batch.not_json"),
        ("{}", None, "batch.missing"),
        ('{"id": "x", "expr": "* * * * *"}', "x", "batch.missing"),
        (json.dumps({**GOOD, "id": ["x"]}), None, "batch.id"),
        (json.dumps({**GOOD, "id": True}), None, "batch.id"),
        (json.dumps({**GOOD, "count": "3"}), 1, "batch.count"),
        (json.dumps({**GOOD, "count": True}), 1, "batch.count"),
        (json.dumps({**GOOD, "count": -1}), 1, "batch.count"),
        (json.dumps({**GOOD, "count": 10**12}), 1, "batch.count"),
        (json.dumps({**GOOD, "after": 5}), 1, "batch.after"),
        (json.dumps({**GOOD, "after": "yesterday"}), 1, "batch.after"),
        (json.dumps({**GOOD, "after": "2027-03-13T12:00:00"}), 1, "batch.after"),
        (json.dumps({**GOOD, "expr": None}), 1, "schedule.validation.cron_type"),
        (json.dumps({**GOOD, "expr": "0 9 30 2 *"}), 1, "schedule.validation.cron_never"),
        (json.dumps({**GOOD, "tz": 5}), 1, "schedule.validation.zone_type"),
        (json.dumps({**GOOD, "tz": "EST"}), 1, "schedule.validation.zone_abbreviation"),
        (json.dumps({**GOOD, "tz": "Asia/\ud800"}), 1, "schedule.validation.zone_unknown"),
    ],
)
def test_a_bad_line_gets_an_error_and_the_next_its_answer(line: str, name: object, code: str) -> None:
    refused, answered = _answers(line, json.dumps(GOOD))
    assert (refused["id"], refused["error"]["code"]) == (name, code)
    assert refused["error"]["message"].endswith(".")
    assert answered == ANSWER


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_odd_values_in_any_place_get_an_answer(value: object) -> None:
    for key in GOOD:
        answer = _asked(**{key: value})
        assert ("error" in answer) != ("occurrences" in answer)


def test_each_answer_is_given_before_the_next_line_is_read() -> None:
    read: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(3):
            read.append(number)
            yield json.dumps({**GOOD, "id": number})

    answers = run_batch(lines())
    assert json.loads(next(answers))["id"] == 0
    assert read == [0]
    assert [json.loads(answer)["id"] for answer in answers] == [1, 2]


def test_the_command_answers_line_by_line_while_its_input_stays_open() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        good = json.dumps(GOOD).encode()
        for line, expected in ((good, ANSWER), (b"\xff\xfe", None), (b"\r", None), (good, ANSWER)):
            command.stdin.write(line + b"\n")
            command.stdin.flush()
            answer = json.loads(command.stdout.readline())
            assert answer == (expected or {"id": None, "error": answer["error"]})
        command.stdin.close()
        assert command.stdout.read() == b""
    assert command.returncode == 0


def test_the_command_ends_quietly_when_nobody_reads_its_answers() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        command.stdin.write((json.dumps(GOOD) + "\n").encode())
        command.stdin.close()
        assert command.stderr.read() == b""
    assert command.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_where_answers_find_no_room_one_line_says_so() -> None:
    command = [sys.executable, "-m", "cli", "occurrences", "--batch"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, input=json.dumps(GOOD), stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
        )

    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
