"""Which zone ids are accepted, and that their data comes from the pinned package alone."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import zones
from domain.errors import Invalid
from tests.domain.zone_ids import ZONES

ROOT = Path(__file__).parents[2]

REFUSED = [
    # id, code after `schedule.validation.zone_`, what the hint says
    ("+02:00", "offset", "Europe/Paris"),
    ("-05", "offset", "Europe/Paris"),
    ("UTC+2", "offset", "Europe/Paris"),
    ("GMT+0200", "offset", "Europe/Paris"),
    ("Etc/GMT+2", "offset", "Europe/Paris"),
    ("Etc/GMT-14", "offset", "Europe/Paris"),
    ("Etc/GMT0", "offset", "`UTC`"),
    ("Etc/GMT", "offset", "`UTC`"),
    ("Etc/Greenwich", "offset", "`UTC`"),
    ("GMT", "offset", "`UTC`"),
    ("Zulu", "offset", "`UTC`"),
    ("utc", "offset", "`UTC`"),
    ("Z", "offset", "`UTC`"),
    ("EST", "abbreviation", "America/New_York"),
    ("CET", "abbreviation", "Europe/Paris"),
    ("EST5EDT", "abbreviation", "America/New_York"),
    ("IST", "abbreviation", "Asia/Kolkata"),
    ("cest", "abbreviation", "Europe/Paris"),
    ("Japan", "no_region", "`Asia/Tokyo`"),
    ("GB", "no_region", "`Europe/London`"),
    ("NZ-CHAT", "no_region", "`Pacific/Chatham`"),
    ("Factory", "no_region", "Europe/Paris"),
    ("America", "no_region", "Europe/Paris"),
    ("posix/Europe/Berlin", "machine", "`Europe/Berlin`"),
    ("right/Europe/Berlin", "machine", "`Europe/Berlin`"),
    ("posix/EST", "machine", "Europe/Paris"),
    ("localtime", "machine", "Europe/Paris"),
    ("europe/berlin", "spelling", "`Europe/Berlin`"),
    ("America/new_york", "spelling", "`America/New_York`"),
    (" Europe/Berlin", "spelling", "`Europe/Berlin`"),
    ("Mars/Phobos", "unknown", "Europe/Paris"),
    ("Europe/../Europe/Berlin", "unknown", "Europe/Paris"),
    ("/etc/passwd", "unknown", "Europe/Paris"),
    ("Europe/Berlin\x00", "unknown", "Europe/Paris"),
    ("", "empty", "Europe/Paris"),
    ("  ", "empty", "Europe/Paris"),
    (None, "type", "Europe/Paris"),
    (2, "type", "Europe/Paris"),
    (b"UTC", "type", "Europe/Paris"),
]


@pytest.mark.parametrize(("zone_id", "code", "hint"), REFUSED)
def test_refusals_have_their_own_code_and_a_hint(zone_id: str, code: str, hint: str) -> None:
    with pytest.raises(Invalid) as refusal:
        zones.load(zone_id)
    assert refusal.value.code == f"schedule.validation.zone_{code}"
    assert refusal.value.field == "timezone"
    assert hint in (refusal.value.hint or "")


@pytest.mark.parametrize(
    "zone_id",
    ["UTC", "Etc/UTC", "US/Eastern", "America/Buenos_Aires", "America/Argentina/Buenos_Aires", "Asia/Calcutta"],
)
def test_regions_legacy_links_and_utc_are_accepted(zone_id: str) -> None:
    assert zones.load(zone_id).id == zone_id
    assert zones.load(zone_id) is zones.load(zone_id)


@given(st.text(max_size=30) | st.text("EuropeBlin/GMTUC+-0123456789_", max_size=20))
def test_no_text_gets_anything_but_a_zone_or_a_refusal(text: str) -> None:
    if text in ZONES:
        assert zones.load(text).id == text
    else:
        with pytest.raises(Invalid):
            zones.load(text)


def test_every_zone_has_its_offset_at_any_time_of_two_centuries() -> None:
    begin = datetime(1950, 1, 1, tzinfo=UTC)
    instants = [begin + timedelta(days=37 * n, minutes=11 * n) for n in range(2400)]
    for zone_id in ZONES[::5]:
        zone, clock = zones.load(zone_id), ZoneInfo(zone_id)
        assert [zone.local(at).isoformat() for at in instants] == [at.astimezone(clock).isoformat() for at in instants]


def test_wall_times_become_instants_by_the_same_rule_as_occurrences() -> None:
    zone = zones.load("America/New_York")
    asked = {
        "2027-03-14T01:59": "2027-03-14T06:59",
        "2027-03-14T02:00": "2027-03-14T07:00",
        "2027-03-14T02:59": "2027-03-14T07:00",
        "2027-03-14T03:00": "2027-03-14T07:00",
        "2027-11-07T00:59": "2027-11-07T04:59",
        "2027-11-07T01:30": "2027-11-07T05:30",
        "2027-11-07T02:00": "2027-11-07T07:00",
    }
    answers = {wall: zone.instant(datetime.fromisoformat(wall)) for wall in asked}
    assert answers == {wall: datetime.fromisoformat(f"{at}+00:00") for wall, at in asked.items()}
    with pytest.raises(Invalid):
        zone.instant(datetime(2201, 1, 1))  # noqa: DTZ001  a wall clock reading has no offset


def test_offsets_with_seconds_are_shown_and_not_lost() -> None:
    zone = zones.load("Africa/Monrovia")
    before, after = zone.changes_between(datetime(1919, 1, 1, tzinfo=UTC), datetime(1973, 1, 1, tzinfo=UTC))
    assert (before.after, after.before, after.after) == (-2670, -2670, 0)
    assert zone.shown(after.at - timedelta(seconds=1)) == "1972-01-06T23:59:59-00:44:30"


def test_the_data_version_is_that_of_the_pinned_package() -> None:
    year, release = metadata.version("tzdata").split(".")[:2]
    assert zones.tzdata_version() == f"{year}{chr(ord('a') + int(release) - 1)}"
    assert f"tzdata=={metadata.version('tzdata')}" in (ROOT / "pyproject.toml").read_text("utf-8")


PLAIN = """
from datetime import UTC, datetime
from zoneinfo import ZoneInfo
print(datetime(2027, 7, 1, tzinfo=ZoneInfo("Europe/Berlin")).utcoffset())
"""
PROBE = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from datetime import UTC, datetime
from zoneinfo import TZPATH, ZoneInfo
from domain.cron import parse
from domain.occurrences import upcoming
from domain.zones import load
at = datetime(2027, 7, 1, tzinfo=UTC)
print(upcoming(parse("0 9 * * *"), load("Europe/Berlin"), at, limit=1)[0].at.isoformat())
print(at.astimezone(ZoneInfo("Europe/Berlin")).utcoffset())
print(sorted({path for path in opened if path.endswith("Berlin") and "tzdata" not in path}))
"""


def test_the_machines_own_zone_files_are_never_read(tmp_path: Path) -> None:
    doctored = tmp_path / "zoneinfo" / "Europe" / "Berlin"
    doctored.parent.mkdir(parents=True)
    doctored.write_bytes(_zone_file("Asia/Tokyo"))
    path = str(tmp_path / "zoneinfo")
    environment = {**os.environ, "PYTHONTZPATH": path, "TZDIR": path, "PYTHONPATH": str(ROOT)}

    def run(code: str) -> list[str]:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    # Without Almanac the doctored file is what Python answers from.
    assert run(PLAIN) == ["9:00:00"]
    assert run(PROBE) == ["2027-07-01T07:00:00+00:00", "2:00:00", "[]"]


def _zone_file(zone_id: str) -> bytes:
    package = metadata.distribution("tzdata")
    return Path(str(package.locate_file(f"tzdata/zoneinfo/{zone_id}"))).read_bytes()
