"""What is read as a body, and how everything else is refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.bodies import MAX_DEPTH, check_json
from domain.errors import Invalid
from domain.reading import read
from domain.schedule import ScheduleDefinition
from tests.api.desk import Desk, definition

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "request.not_json"),
        ("{", "request.not_json"),
        ("{'a': 1}", "request.not_json"),
        ("{} {}", "request.not_json"),
        ('{"a": NaN}', "request.not_json"),
        ('{"a": -Infinity}', "request.not_json"),
        ('{"a": 1e999}', "request.not_json"),
        ("9" * 5000, "request.not_json"),
        ("\ufeff{}", "request.not_json"),
        ('{"a": 1, "a": 2}', "request.key_duplicate"),
        ('{"a": {"b": 1, "b": 2}}', "request.key_duplicate"),
        (r'{"a": "\u0000"}', "request.text_unstorable"),
        (r'{"\u0000": 1}', "request.text_unstorable"),
        (r'["\ud800"]', "request.text_unstorable"),
        (r'{"\ud800": 1, "\ud800": 2}', "request.text_unstorable"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "request.too_deep"),
        ("[" * 100_000, "request.too_deep"),
        ('{"a":' * 100_000, "request.too_deep"),
    ],
)
def test_what_is_not_plain_json_is_refused(text: str, code: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_json(text)
    assert refused.value.code == code


@pytest.mark.parametrize("text", ["[" * MAX_DEPTH + "]" * MAX_DEPTH, r'"\ud83d\ude00"', "1e308", '{"a": 1, "A": 2}'])
def test_plain_json_is_taken(text: str) -> None:
    check_json(text)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        check_json(text)
    except Invalid:
        return
    json.loads(text)


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)))
def test_any_object_is_a_schedule_or_a_refusal_with_a_code(body: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refused:
        read(ScheduleDefinition, json.dumps(body))
    assert refused.value.code.startswith("request.")
    assert refused.value.message


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        read(ScheduleDefinition, json.dumps(definition(cron=5, timezone=None, priorty=1)))

    found = {(mistake["code"], mistake["field"]) for mistake in refused.value.details["errors"]}
    assert found == {
        ("request.field_type", "cron"),
        ("request.field_missing", "timezone"),
        ("request.field_unknown", "priorty"),
    }


def test_a_field_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(Invalid) as refused:
        read(ScheduleDefinition, json.dumps(definition(priorty=1)))
    assert refused.value.hint == "Did you mean 'priority'?"


@pytest.mark.stack
@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{}", {}, 415, "request.content_type"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "request.content_type"),
        (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "request.content_type"),
        (b"", JSON, 400, "request.not_json"),
        (b"hello", JSON, 400, "request.not_json"),
        (b'"\xff"', JSON, 400, "request.not_json"),
        ("{}".encode("utf-16"), JSON, 400, "request.not_json"),
        (b"[]", JSON, 400, "request.field_type"),
        (b"null", JSON, 400, "request.field_type"),
        (b'{"name": "a", "name": "b"}', JSON, 400, "request.key_duplicate"),
        (rb'{"\ud800": 1, "\ud800": 2}', JSON, 400, "request.text_unstorable"),
        (b"[" * 50_000, JSON, 400, "request.too_deep"),
        (b" " * 100_001, JSON, 413, "request.body_too_large"),
    ],
)
async def test_a_body_that_is_none_is_a_problem(
    desk: Desk, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await desk.http.post(f"{desk.root}/schedules", content=content, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.stack
@pytest.mark.parametrize(
    "body",
    [
        {f"field{number}": 1 for number in range(5_000)},
        {"k" * 90_000: 1},
        definition(name="n" * 90_000),
        definition(cron="*" * 90_000),
        definition(timezone="Europe/" + "z" * 90_000),
        definition(executor="e" * 90_000),
        definition(payload={"pipeline": "p" * 90_000, "version": "current"}),
        definition(payload={"pipeline": "a", "x" * 90_000: 1}),
    ],
)
async def test_an_answer_is_not_as_long_as_what_it_refuses(desk: Desk, body: dict[str, object]) -> None:
    answer = await desk.post("/schedules", body)

    assert answer.status_code == 400
    assert len(answer.content) < 10_000


def test_mistakes_are_counted_that_are_too_many_to_tell() -> None:
    with pytest.raises(Invalid) as refused:
        read(ScheduleDefinition, json.dumps(definition() | {f"field{number}": 1 for number in range(100)}))

    assert len(refused.value.details["errors"]) == 20
    assert refused.value.details["errors_left_out"] == 80


@pytest.mark.stack
async def test_a_body_without_end_is_refused_at_the_limit(desk: Desk) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 10_000
            yield b" " * 10_000

    answer = await desk.http.post(f"{desk.root}/schedules", content=endless(), headers=JSON)

    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 100_000)
    assert sent <= 120_000


@pytest.mark.stack
async def test_paths_and_methods_that_are_none_are_problems(desk: Desk) -> None:
    for method, path, status, code in (
        ("GET", "/nowhere", 404, "request.path_unknown"),
        ("GET", "/api/v2/preview", 404, "request.path_unknown"),
        ("GET", f"{desk.root}/schedules/", 404, "request.path_unknown"),
        ("PATCH", f"{desk.root}/schedules", 405, "request.method_not_allowed"),
        ("DELETE", f"{desk.root}/runs/x", 405, "request.method_not_allowed"),
    ):
        answer = await desk.http.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.headers["Content-Type"] == "application/problem+json"


async def test_a_preview_needs_neither_database_nor_temporal(dark: httpx.AsyncClient) -> None:
    query = {"cron": "30 2 * * *", "timezone": "America/New_York", "count": "2"}
    answer = await dark.get("/api/v1/preview", params=query)

    assert answer.status_code == 200
    assert len(answer.json()["rows"]) == 2
    assert answer.json()["tzdata_version"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "0 9 30 2 *"}, "cron"),
        ({"timezone": "+02:00"}, "timezone"),
        ({"count": "0"}, "count"),
        ({"x": "1"}, "x"),
    ],
)
async def test_a_preview_of_what_is_refused_at_save_is_refused(
    dark: httpx.AsyncClient, changes: dict[str, str], field: str
) -> None:
    query = {"cron": "0 9 * * *", "timezone": "UTC"} | changes

    answer = await dark.get("/api/v1/preview", params=query)

    assert (answer.status_code, answer.json()["field"]) == (400, field)
