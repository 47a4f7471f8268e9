"""The chart of a lane in the docs is what the lane does."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from domain.lane import Lane, arrive, lost, released, tick
from domain.schedule import CollisionPolicy
from tests.domain.builders import NOON, entry

QUEUE = CollisionPolicy.QUEUE_LATEST


def kind(lane: Lane) -> str:
    if lane.in_doubt_until is not None:
        return "in_doubt"
    return "free" if lane.holder is None else "held"


def edges() -> set[tuple[str, str, str]]:
    """Each event in each state, with and without somebody who waits."""
    holder, other = entry("holder"), entry("other", policy=QUEUE)
    held = arrive(Lane(), holder, NOON).lane
    found = {("free", kind(held), "request")}
    for lane in (held, arrive(held, other, NOON).lane):
        doubtful = lost(lane, NOON).lane
        after = {
            "end": (lane, released(lane, holder.run.run_id, NOON).lane),
            "loss": (lane, doubtful),
            "release": (doubtful, released(doubtful, holder.run.run_id, NOON).lane),
            "fence": (doubtful, tick(doubtful, NOON + timedelta(hours=1)).lane),
        }
        found |= {(kind(before), kind(now), event) for event, (before, now) in after.items()}
        for before in (lane, doubtful):
            found.add((kind(before), kind(arrive(before, entry("third", policy=QUEUE), NOON).lane), "request"))
    return found


def test_the_chart_in_the_docs_is_what_the_lane_does() -> None:
    text = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
    chart = text.split("<!-- lane states -->")[1].split("```")[1]
    assert set(re.findall(r"(\S+) --> (\S+): (\S+)", chart)) == edges()
