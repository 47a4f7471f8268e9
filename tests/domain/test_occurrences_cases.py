"""Every case from users of other schedulers, with our answers: instants, local times and refusals."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from domain.cron import parse
from domain.errors import Invalid
from domain.occurrences import upcoming
from domain.zones import load, tzdata_version

LINES = (Path(__file__).parent.parent / "cases" / "occurrences.jsonl").read_text("utf-8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(line) for line in LINES]
REFUSED = [case for case in CASES if case.get("expect_error") or case.get("never")]
ANSWERED = [case for case in CASES if case not in REFUSED]


def _ids(cases: list[dict[str, Any]]) -> list[str]:
    return [case["id"] for case in cases]


def test_all_cases_are_here_and_hold_for_the_zone_data_in_use() -> None:
    assert len(CASES) == len({case["id"] for case in CASES}) == 544
    assert {case.get("tzdata", tzdata_version()) for case in CASES} == {tzdata_version()}


@pytest.mark.parametrize("case", ANSWERED, ids=_ids(ANSWERED))
def test_occurrences_are_the_expected_instants_and_local_times(case: dict[str, Any]) -> None:
    pattern, zone, after = parse(case["expr"]), load(case["tz"]), datetime.fromisoformat(case["after"])
    found = upcoming(pattern, zone, after, limit=len(case["expect"]))
    assert [f"{occurrence.at:%Y-%m-%dT%H:%M:%SZ}" for occurrence in found] == case["expect"]
    for occurrence, instant in zip(found, case["expect"], strict=True):
        nominal = [f"{time:%Y-%m-%dT%H:%M}" for time in occurrence.nominal]
        expected = case.get("nominal_local", {}).get(instant, [f"{zone.local(occurrence.at):%Y-%m-%dT%H:%M}"])
        if expected[-1].startswith("..."):
            # A long list is cut short: `...7 in all`.
            assert len(nominal) == int(expected[-1].strip(".").split()[0])
            nominal, expected = nominal[: len(expected) - 1], expected[:-1]
        assert nominal == expected


@pytest.mark.parametrize("case", REFUSED, ids=_ids(REFUSED))
def test_what_must_be_refused_is_refused_by_the_right_rule(case: dict[str, Any]) -> None:
    refused, given = (load, "tz") if case["kind"] == "tz_error" else (parse, "expr")
    with pytest.raises(Invalid) as refusal:
        refused(case[given])
    kind = {"never": "cron_never", "error": "cron_", "tz_error": "zone_"}[case["kind"]]
    assert refusal.value.code.startswith(f"schedule.validation.{kind}")
