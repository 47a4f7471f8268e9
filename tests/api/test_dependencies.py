"""Parents over REST: what is refused, what is warned of, and that two people at once close no circle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.desk import PIPELINE, Desk, definition

pytestmark = pytest.mark.stack


async def test_parents_are_kept_and_shown(desk: Desk) -> None:
    close = (await desk.created(name="close"))["schedule_id"]
    pulse = await desk.created(name="pulse", after_schedule_ids=[close], dependency_deadline="17:30")

    assert pulse["definition"]["after_schedule_ids"] == [close]
    assert (await desk.get(f"/schedules/{pulse['schedule_id']}")).json()["definition"] == pulse["definition"]


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"after_schedule_ids": []}, "schedule.validation.dependency_empty", "after_schedule_ids"),
        ({"after_schedule_ids": ["saaaaaaaaaaaa"]}, "schedule.validation.dependency_unknown", "after_schedule_ids.0"),
        ({"after_schedule_id": "saaaaaaaaaaaa"}, "schedule.validation.dependency_unknown", "after_schedule_id"),
        ({"after_schedule_ids": ["s" * 65]}, "request.field_invalid", "after_schedule_ids.0"),
        ({"after_schedule_ids": ["saaaaaaaaaaaa"] * 1001}, "request.field_invalid", "after_schedule_ids"),
        ({"after_schedule_id": "s" * 65}, "request.field_invalid", "after_schedule_id"),
        ({"after_terminal_status": "succeeded"}, "request.field_invalid", "after_terminal_status"),
        ({"after_delay_minutes": -1}, "request.field_invalid", "after_delay_minutes"),
        ({"dependency_deadline": "25:00"}, "request.field_invalid", "dependency_deadline"),
        ({"cron": None}, "schedule.validation.cron_missing", "cron"),
    ],
)
async def test_what_can_not_be_waited_for_is_refused(
    desk: Desk, changes: dict[str, Any], code: str, field: str
) -> None:
    refused = await desk.post("/schedules", definition(**changes))

    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (400, code, field)
    assert (await desk.get("/schedules")).json()["items"] == []


async def test_a_deadline_that_no_occurrence_can_meet_is_refused(desk: Desk) -> None:
    close = (await desk.created(name="close"))["schedule_id"]

    refused = await desk.post(
        "/schedules",
        definition(name="pulse", cron="0 18 * * *", after_schedule_ids=[close], dependency_deadline="17:30"),
    )

    assert refused.json()["code"] == "schedule.validation.deadline_unreachable"


async def test_ids_of_another_workspace_deleted_ones_and_oneself_are_refused(desk: Desk) -> None:
    elsewhere = Desk(desk.http, f"{desk.workspace}-b")
    await elsewhere.open()
    foreign = (await elsewhere.created())["schedule_id"]
    gone = (await desk.created(name="gone"))["schedule_id"]
    await desk.delete(f"/schedules/{gone}")
    mine = await desk.created(name="mine")
    path = f"/schedules/{mine['schedule_id']}"

    codes = [
        (await desk.put(path, definition(name="mine", after_schedule_ids=[parent], revision=1))).json()["code"]
        for parent in (foreign, gone, mine["schedule_id"])
    ]

    assert codes == [
        "schedule.validation.dependency_unknown",
        "schedule.validation.dependency_unknown",
        "schedule.validation.dependency_self",
    ]


async def test_a_circle_is_refused_and_printed(desk: Desk) -> None:
    a = await desk.created(name="a")
    b = await desk.created(name="b", after_schedule_ids=[a["schedule_id"]])
    c = await desk.created(name="c", after_schedule_ids=[b["schedule_id"]])

    refused = await desk.put(
        f"/schedules/{a['schedule_id']}", definition(name="a", after_schedule_ids=[c["schedule_id"]], revision=1)
    )

    assert refused.json()["code"] == "schedule.validation.dependency_cycle"
    assert "a -> c -> b -> a" in refused.json()["detail"]


async def test_two_edits_at_once_close_no_circle(desk: Desk) -> None:
    for number in range(5):
        one, other = await desk.created(name=f"a{number}"), await desk.created(name=f"b{number}")

        def waiting(mine: dict[str, Any], parent: dict[str, Any]) -> Any:
            body = mine["definition"] | {"after_schedule_ids": [parent["schedule_id"]], "revision": 1}
            return desk.put(f"/schedules/{mine['schedule_id']}", body)

        answers = await asyncio.gather(waiting(one, other), waiting(other, one))

        assert sorted(answer.status_code for answer in answers) == [200, 400]
        refused = next(answer for answer in answers if answer.status_code == 400)
        assert refused.json()["code"] == "schedule.validation.dependency_cycle"
        for view in (await desk.get("/schedules")).json()["items"]:
            if view["definition"]["after_schedule_ids"]:
                await desk.delete(f"/schedules/{view['schedule_id']}")
        for view in (await desk.get("/schedules")).json()["items"]:
            await desk.delete(f"/schedules/{view['schedule_id']}")


async def test_a_parent_can_not_be_deleted_and_its_dependents_are_named(desk: Desk) -> None:
    close = (await desk.created(name="close"))["schedule_id"]
    pulse = (await desk.created(name="pulse", after_schedule_id=close))["schedule_id"]

    refused = await desk.delete(f"/schedules/{close}")

    assert (refused.status_code, refused.json()["code"]) == (409, "schedule.has_dependents")
    assert refused.json()["dependents"] == [{"schedule_id": pulse, "name": "pulse"}]
    assert (await desk.delete(f"/schedules/{pulse}")).status_code == 204
    assert (await desk.delete(f"/schedules/{close}")).status_code == 204


async def test_replacing_the_list_clears_the_single_parent_unless_both_are_given(desk: Desk) -> None:
    first, second = [(await desk.created(name=name))["schedule_id"] for name in ("first", "second")]
    path = f"/schedules/{(await desk.created(name='mine', after_schedule_id=first))['schedule_id']}"

    body = definition(name="mine", after_schedule_ids=[second], revision=1)
    cleared = (await desk.put(path, body)).json()["definition"]
    body = definition(name="mine", after_schedule_ids=[second], after_schedule_id=first, revision=2)
    both = (await desk.put(path, body)).json()["definition"]

    assert (cleared["after_schedule_ids"], cleared["after_schedule_id"]) == ([second], None)
    assert (both["after_schedule_ids"], both["after_schedule_id"]) == ([second], first)


async def test_warnings_come_with_the_answer_and_are_read_again(desk: Desk) -> None:
    weekly = (await desk.created(name="weekly", cron="0 23 * * 1"))["schedule_id"]

    saved = await desk.created(name="daily", cron="0 7 * * *", after_schedule_ids=[weekly])

    said = (await desk.get(f"/schedules/{saved['schedule_id']}/advice")).json()["warnings"]
    assert said == saved["warnings"]
    assert len(said) == 2
    assert "parent_absent" in said[0]
    assert "16 h 00 min" in said[1]


async def test_independent_schedules_of_one_target_that_are_too_close_are_advised(desk: Desk) -> None:
    await desk.release(PIPELINE, ["sleep", "1"])
    close = await desk.created(name="close", cron="0 12 1 1 *")
    run = (await desk.post(f"/schedules/{close['schedule_id']}/run-now")).json()
    await desk.ended(run["run_id"])

    beside = await desk.created(name="beside", cron="0 0 * * *")
    moved = await desk.put(f"/schedules/{close['schedule_id']}", definition(name="close", cron="0 0 * * *", revision=1))
    waiting = await desk.put(
        f"/schedules/{beside['schedule_id']}",
        definition(name="beside", cron="0 0 * * *", after_schedule_ids=[close["schedule_id"]], revision=1),
    )

    assert beside["warnings"] == []
    assert any("beside is due 0 s after close" in warning for warning in moved.json()["warnings"])
    assert waiting.json()["warnings"] == []
