"""Looking ahead and behind: the next few occurrences, and what fell due since somebody last looked.

Called only from a recorded activity: its answers depend on the zone data of the day, and a workflow must
decide the same when it is replayed under newer data.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import takewhile

from domain import cron, zones
from domain.errors import Invalid
from domain.occurrences import Occurrence, iterate, survey, upcoming
from domain.schedule import SHOWN_AHEAD, Backlog, OccurrencePlan, PlannedOccurrence
from domain.values import Value

PLAN_LENGTH = 16
PLAN_REACH = timedelta(hours=24)


class LookAround(Value):
    """What to look for: the backlog in `(after, now]` and the plan after `now`."""

    cron: str
    timezone: str
    max_start_delay_minutes: int
    start_deadline: str | None
    after: datetime
    now: datetime
    waits: bool = False
    """Whether occurrences wait for parents."""
    dependency_deadline: str | None = None
    last_nominal: datetime | None = None
    """The latest local time already dealt with under this timing. Where new zone data moves an instant, the
    local times it stands for must not be repeated."""


class Seen(Value):
    backlog: Backlog | None
    plan: OccurrencePlan


def look_around(request: LookAround) -> Seen:
    """Raises Invalid where the pattern or the zone is no longer accepted."""
    pattern, zone = cron.parse(request.cron), zones.load(request.timezone)
    after = _after_repeats(request, pattern, zone)
    found = survey(pattern, zone, after, request.now) if after < request.now else None
    backlog = None
    if found is not None:
        previous = found.previous.at if found.previous else None
        backlog = Backlog(
            count=found.count, first=found.first.at, previous=previous, latest=_planned(request, found.last, zone)
        )
    return Seen(backlog=backlog, plan=_plan(request, pattern, zone, max(after, request.now)))


def _plan(request: LookAround, pattern: cron.Pattern, zone: zones.Zone, after: datetime) -> OccurrencePlan:
    ahead = upcoming(pattern, zone, after, limit=PLAN_LENGTH + SHOWN_AHEAD - 1)
    near = sum(occurrence.at <= after + PLAN_REACH for occurrence in ahead[:PLAN_LENGTH])
    length = max(near, 1)
    return OccurrencePlan(
        planned=tuple(_planned(request, occurrence, zone) for occurrence in ahead[:length]),
        beyond=tuple(ahead[length : length + SHOWN_AHEAD - 1]),
        tzdata_version=zones.tzdata_version(),
        made_at=request.now,
    )


def _planned(request: LookAround, occurrence: Occurrence, zone: zones.Zone) -> PlannedOccurrence:
    start_by = occurrence.at + timedelta(minutes=request.max_start_delay_minutes)
    if request.start_deadline is not None:
        hour, minute = request.start_deadline.split(":")
        daily = cron.parse(f"{int(minute)} {int(hour)} * * *")
        start_by = min(start_by, next(iterate(daily, zone, occurrence.at)).at)
    wait_until = None
    if request.waits:
        wait_until = wait_end(zone, occurrence.nominal[-1].date(), request.dependency_deadline)
    return PlannedOccurrence(occurrence=occurrence, start_by=start_by, wait_until=wait_until)


def wait_end(zone: zones.Zone, day: date, deadline: str | None) -> datetime:
    """When an occurrence of this local date stops waiting for its parents."""
    if deadline is None:
        return local_instant(zone, day + timedelta(days=1), 0, 0)
    clock, _, later = deadline.partition("+")
    hour, minute = (int(part) for part in clock.split(":"))
    return local_instant(zone, day + timedelta(days=int(later or 0)), hour, minute)


def local_instant(zone: zones.Zone, day: date, hour: int, minute: int) -> datetime:
    """The instant of a local wall time, by the same rule as every occurrence."""
    daily = cron.parse(f"{minute} {hour} * * *")
    well_before = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=2)
    return next(o.at for o in iterate(daily, zone, well_before) if day in o.local_dates)


def _after_repeats(request: LookAround, pattern: cron.Pattern, zone: zones.Zone) -> datetime:
    """The instant after the last occurrence that only repeats local times already dealt with."""
    if request.last_nominal is None:
        return request.after
    latest = request.last_nominal
    repeats = list(takewhile(lambda o: o.nominal[-1] <= latest, iterate(pattern, zone, request.after)))
    return repeats[-1].at if repeats else request.after


class WaitEnds(Value):
    """When occurrences of these local dates stop waiting for their parents."""

    timezone: str
    deadline: str | None
    dates: tuple[date, ...]


class WaitEndsFound(Value):
    ends: tuple[datetime, ...] = ()
    refusal: str | None = None
    """Instead of them: why the zone is not accepted."""


def wait_ends(request: WaitEnds) -> WaitEndsFound:
    try:
        zone = zones.load(request.timezone)
    except Invalid as error:
        return WaitEndsFound(refusal=error.message)
    return WaitEndsFound(ends=tuple(wait_end(zone, day, request.deadline) for day in request.dates))


def occurrences_on(pattern_text: str | None, timezone: str, days: tuple[date, ...]) -> list[datetime]:
    """Every instant at which the pattern is due on one of these local dates: none where it is no longer accepted."""
    if pattern_text is None or not days:
        return []
    try:
        pattern, zone = cron.parse(pattern_text), zones.load(timezone)
    except Invalid:
        return []
    first, last = min(days), max(days)
    before = datetime(first.year, first.month, first.day, tzinfo=UTC) - timedelta(days=2)
    near = takewhile(lambda o: o.local_dates[0] <= last, iterate(pattern, zone, before))
    return [o.at for o in near if not set(o.local_dates).isdisjoint(days)]
