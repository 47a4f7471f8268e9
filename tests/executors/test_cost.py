"""What a program says it has cost is written down as its step's, and can't be made anybody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.pipeline import Retry
from domain.run import RunState
from evidence import reader
from executors import cost
from tests.executors.test_pipeline import Ran, script

SAY = """echo '{"amount": "0.12", "currency": "USD", "what": "tokens"}' >> "$ALMANAC_COST_FILE"; """


def costs(ran: Ran) -> list[tuple[str | None, Any]]:
    found = reader.by_execution(reader.read(ran.folder), "cost")
    assert found.keys() <= {ran.identity.execution_id}
    return [(one.step_id, one.body) for documents in found.values() for one in documents]


async def test_a_cost_is_a_document_of_its_step(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("ask", SAY + SAY), script("free", "true"))
    assert (await ran.outcome()).state is RunState.SUCCEEDED
    ((step_id, body),) = costs(ran)
    assert step_id == "ask"
    assert body["totals"] == {"USD": "0.24"}
    assert [item["what"] for item in body["items"]] == ["tokens", "tokens"]


async def test_each_attempt_has_its_own_and_a_failed_one_has_cost_all_the_same(tmp_path: Path) -> None:
    again = script("ask", SAY + "exit 1", idempotent=True, retry=Retry(attempts=2, pause_seconds=0))
    ran = Ran(tmp_path, again)
    assert (await ran.outcome()).state is RunState.FAILED
    assert [body["totals"] for _, body in costs(ran)] == [{"USD": "0.12"}, {"USD": "0.12"}]


async def test_a_line_that_is_no_cost_fails_no_step_and_is_told(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("ask", SAY + 'echo much >> "$ALMANAC_COST_FILE"'))
    assert (await ran.outcome()).state is RunState.SUCCEEDED
    ((_, body),) = costs(ran)
    assert body["totals"] == {"USD": "0.12"}
    assert body["problems"] == ["Line 2 is no cost: it is not JSON."]


async def test_a_huge_file_is_told_and_not_read(tmp_path: Path) -> None:
    ran = Ran(tmp_path, script("ask", f'head -c {cost.LARGEST + 1} /dev/zero > "$ALMANAC_COST_FILE"'))
    assert (await ran.outcome()).state is RunState.SUCCEEDED
    ((_, body),) = costs(ran)
    assert "more than" in body["problems"][0]


@pytest.mark.parametrize("put", ["ln -s /etc/hostname", "mkfifo", "mkdir"])
async def test_what_is_no_file_is_not_opened(tmp_path: Path, put: str) -> None:
    ran = Ran(tmp_path, script("ask", f'{put} "$ALMANAC_COST_FILE"'))
    assert (await ran.outcome()).state is RunState.SUCCEEDED
    assert costs(ran) == []
