"""Which zone ids are accepted, and what to write instead of the others."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import NoReturn

from domain.errors import Invalid

_OFFSET = re.compile(r"(?:UTC|GMT|Z|UT)?\s*[+-]\s*[0-9]{1,2}(?::?[0-9]{2}){0,2}|Z|[0-9]{4}", re.IGNORECASE)
_ETC_OFFSET = re.compile(r"Etc/(?:GMT.*|Greenwich)", re.IGNORECASE)
_UTC_NAMES = {"gmt", "gmt0", "gmt+0", "gmt-0", "uct", "universal", "zulu", "greenwich", "ut", "utc", "z"}
_UTC_LINKS = {"Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu"}
"""Legacy links that are UTC by another name, and no offset from anything."""

_REGION_OF = {
    "EST": "America/New_York", "EDT": "America/New_York", "EST5EDT": "America/New_York",
    "CST": "America/Chicago", "CDT": "America/Chicago", "CST6CDT": "America/Chicago",
    "MST": "America/Denver", "MDT": "America/Denver", "MST7MDT": "America/Denver",
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PST8PDT": "America/Los_Angeles",
    "HST": "Pacific/Honolulu", "AKST": "America/Anchorage", "AKDT": "America/Anchorage",
    "WET": "Europe/Lisbon", "WEST": "Europe/Lisbon", "BST": "Europe/London", "MET": "Europe/Paris",
    "CET": "Europe/Paris", "CEST": "Europe/Paris", "EET": "Europe/Athens", "EEST": "Europe/Athens",
    "MSK": "Europe/Moscow", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul",
    "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland",
}  # fmt: skip
_EXAMPLE = "Use an IANA region id such as `Europe/Paris`, or `UTC`."


def check_name(zone_id: str) -> str:
    """The id itself where it is accepted. Raises Invalid (`schedule.validation.zone_*`) with what to write instead."""
    if not isinstance(zone_id, str):
        _refuse("type", f"A time zone is text, not {type(zone_id).__name__}.", _EXAMPLE)
    if zone_id == "UTC":
        return zone_id
    if not zone_id.strip():
        _refuse("empty", "The time zone is empty.", _EXAMPLE)
    shown = zone_id if len(zone_id) <= 60 and zone_id.isprintable() else ascii(zone_id[:60])[1:-1]
    _refuse_offset(zone_id, shown)
    if "/" not in zone_id:
        _refuse_short(zone_id, shown)
    if zone_id.startswith(("posix/", "right/")):
        rest = zone_id.partition("/")[2]
        hint = f"Write `{rest}`." if rest in _ids() and "/" in rest else _EXAMPLE
        _refuse("machine", f"`{shown}` names a machine's copy of a zone, not an IANA id.", hint)
    if zone_id not in _ids():
        meant = _by_case().get(zone_id.strip().casefold())
        if meant:
            _refuse("spelling", f"The zone `{shown}` is misspelled.", f"Write `{meant}`.")
        _refuse("unknown", f"The zone `{shown}` is unknown.", _EXAMPLE)
    return zone_id


def _refuse(kind: str, message: str, hint: str) -> NoReturn:
    raise Invalid(f"schedule.validation.zone_{kind}", message, field="timezone", hint=hint)


def _refuse_offset(zone_id: str, shown: str) -> None:
    if zone_id.strip().casefold().removeprefix("etc/") in _UTC_NAMES and zone_id not in _UTC_LINKS:
        _refuse("offset", f"`{shown}` is a fixed offset, not a region.", "Write `UTC`.")
    if _OFFSET.fullmatch(zone_id.strip()) or _ETC_OFFSET.fullmatch(zone_id.strip()):
        message = f"`{shown}` is a fixed offset, which can't follow a region's daylight saving time."
        _refuse("offset", message, _EXAMPLE)


def _refuse_short(zone_id: str, shown: str) -> NoReturn:
    name = zone_id.strip()
    if name.casefold() == "localtime":
        _refuse("machine", f"`{shown}` means whatever the machine is set to.", _EXAMPLE)
    region = _REGION_OF.get(name.upper())
    if region:
        message = f"`{shown}` is an abbreviation, which is ambiguous and does not name a region."
        _refuse("abbreviation", message, f"Write the region, such as `{region}`.")
    target = _links().get(name.casefold())
    hint = f"Write `{target}`." if target else _EXAMPLE
    _refuse("no_region", f"`{shown}` is not a region id (`Area/Place`).", hint)


@lru_cache(maxsize=1)
def _ids() -> frozenset[str]:
    """All ids of the package: regions, legacy links and the names refused for their shape."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split())


@lru_cache(maxsize=1)
def _by_case() -> dict[str, str]:
    return {name.casefold(): name for name in sorted(_ids()) if "/" in name}


@lru_cache(maxsize=1)
def _links() -> dict[str, str]:
    """Legacy ids without a slash and the region each stands for, from the package's own table."""
    source = resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text("utf-8")
    rows = (line.split() for line in source.splitlines() if line.startswith("L "))
    return {name.casefold(): target for _, target, name in rows if "/" not in name and "/" in target}
