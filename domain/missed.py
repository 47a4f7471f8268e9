"""What becomes of the occurrences that fell due while nobody was looking.

| policy | the latest of them | all the others |
|---|---|---|
| skip | runs while it is at most `lateness` late, else it joins the summary | one summary row |
| latest | runs once while it is at most the catch-up age old, else it joins the summary | one summary row |

A single occurrence within its lateness window is simply due. All bounds are inclusive.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.run import Missed, Origin
from domain.schedule import Backlog, MissedPolicy, PlannedOccurrence
from domain.values import Value


class DueDecision(Value):
    run: PlannedOccurrence | None
    origin: Origin
    missed: Missed | None


def decide(
    backlog: Backlog, policy: MissedPolicy, now: datetime, *, lateness_seconds: int, catch_up_max_age_seconds: int
) -> DueDecision:
    late = now - backlog.latest.at
    within_lateness = late <= timedelta(seconds=lateness_seconds)
    catches_up = policy is MissedPolicy.LATEST and (backlog.count > 1 or not within_lateness)
    runs = late <= timedelta(seconds=catch_up_max_age_seconds) if catches_up else within_lateness
    if not runs:
        return DueDecision(
            run=None,
            origin=Origin.CRON,
            missed=Missed(first=backlog.first, last=backlog.latest.at, count=backlog.count),
        )
    return DueDecision(
        run=backlog.latest,
        origin=Origin.CATCH_UP if catches_up else Origin.CRON,
        missed=_before_latest(backlog),
    )


def _before_latest(backlog: Backlog) -> Missed | None:
    if backlog.previous is None:
        return None
    return Missed(first=backlog.first, last=backlog.previous, count=backlog.count - 1)
