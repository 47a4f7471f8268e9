"""Reads one compiled zone file (TZif, RFC 9636) and the rule it ends with, as plain integers.

A zone file lists its past changes one by one and ends with a POSIX rule ("EST5EDT,M3.2.0,M11.1.0") for all
later years. Both are turned into the same thing, a list of (instant, UTC offset) pairs, so that nothing above
this file needs to know which of the two a change came from.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from datetime import date

DAY = 86_400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

_HEADER = struct.Struct(">4sc15x6l")
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_CLOCK = r"[+-]?\d{1,3}(?::\d{2}(?::\d{2})?)?"
_RULE = re.compile(
    rf"{_NAME}(?P<standard>{_CLOCK})"
    rf"(?:{_NAME}(?P<summer>{_CLOCK})?,(?P<begin>[^,/]+)(?:/(?P<begin_time>{_CLOCK}))?"
    rf",(?P<end>[^,/]+)(?:/(?P<end_time>{_CLOCK}))?)?"
)


@dataclass(frozen=True, slots=True)
class Changes:
    """The UTC offset before any change, then each change as (instant in Unix seconds, offset in seconds)."""

    before: int
    changes: tuple[tuple[int, int], ...]

    @property
    def last(self) -> int:
        """The offset after all changes."""
        return self.changes[-1][1] if self.changes else self.before


def read(data: bytes, last_year: int) -> Changes:
    """All offset changes of a zone file up to the end of `last_year` (UTC), in order.

    Raises ValueError where the bytes are not a TZif file of version 2 or later.
    """
    version, counts = _header(data, 0)
    if version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    # The first block repeats the data in 32 bits for old readers: skip it.
    second = _HEADER.size + _block_size(counts, time_size=4)
    _, counts = _header(data, second)
    start = second + _HEADER.size
    offsets, listed = _listed(data[start:], counts)
    footer = data[start + _block_size(counts, time_size=8) :].strip(b"\n").decode("ascii")
    ruled = _ruled(footer, listed[-1][0] if listed else None, last_year) if footer else []
    return Changes(offsets[0], _without_repeats(offsets[0], listed + ruled))


def _header(data: bytes, at: int) -> tuple[bytes, tuple[int, ...]]:
    try:
        magic, version, *counts = _HEADER.unpack_from(data, at)
    except struct.error as error:
        raise ValueError("a zone file that ends early") from error
    if magic != b"TZif":
        raise ValueError("not a TZif file")
    return version, tuple(counts)


def _block_size(counts: tuple[int, ...], *, time_size: int) -> int:
    is_ut, is_std, leaps, times, types, characters = counts
    return times * (time_size + 1) + types * 6 + characters + leaps * (time_size + 4) + is_std + is_ut


def _listed(block: bytes, counts: tuple[int, ...]) -> tuple[list[int], list[tuple[int, int]]]:
    _, _, _, times, types, _ = counts
    instants = struct.unpack_from(f">{times}q", block)
    kinds = struct.unpack_from(f">{times}B", block, times * 8)
    offsets = [struct.unpack_from(">l", block, times * 9 + kind * 6)[0] for kind in range(types)]
    return offsets, [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]


def _without_repeats(before: int, changes: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Changes of the name or of the summer-time flag alone move no clock."""
    kept: list[tuple[int, int]] = []
    for instant, offset in changes:
        if offset != before:
            kept.append((instant, offset))
            before = offset
    return tuple(kept)


def _ruled(footer: str, after: int | None, last_year: int) -> list[tuple[int, int]]:
    """The changes the closing rule makes after the last listed one."""
    rule = _RULE.fullmatch(footer)
    if rule is None:
        raise ValueError(f"a zone rule that can't be read: {footer}")
    if rule["begin"] is None:
        return []
    standard = -_clock_seconds(rule["standard"])
    summer = -_clock_seconds(rule["summer"]) if rule["summer"] else standard + 3600
    begin_time = _clock_seconds(rule["begin_time"] or "2")
    end_time = _clock_seconds(rule["end_time"] or "2")
    first_year = 1970 if after is None else date.fromordinal(EPOCH_ORDINAL + after // DAY).year - 1
    # Keyed by instant: summer time that ends the moment it begins again never ends.
    changes: dict[int, int] = {}
    for year in range(first_year, last_year + 1):
        changes[_rule_day(rule["begin"], year) * DAY + begin_time - standard] = summer
        changes[_rule_day(rule["end"], year) * DAY + end_time - summer] = standard
    return sorted(change for change in changes.items() if after is None or change[0] > after)


def _clock_seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)


def _rule_day(rule: str, year: int) -> int:
    """The Unix day number of `M3.2.0` (month, week, weekday), `J60` (never counts 29 February) or `59`."""
    if rule.startswith("M"):
        month, week, weekday = (int(part) for part in rule[1:].split("."))
        return _nth_weekday(year, month, week, weekday)
    first = date(year, 1, 1).toordinal() - EPOCH_ORDINAL
    if rule.startswith("J"):
        leap = date(year, 3, 1).toordinal() - date(year, 1, 1).toordinal() == 60
        day = int(rule[1:])
        return first + day - 1 + (1 if leap and day >= 60 else 0)
    return first + int(rule)


def _nth_weekday(year: int, month: int, week: int, weekday: int) -> int:
    """Week 5 means the last one of the month; weekday 0 is Sunday."""
    first = date(year, month, 1)
    day = 1 + (weekday - first.isoweekday()) % 7 + (week - 1) * 7
    following = date(year + month // 12, month % 12 + 1, 1)
    if day > (following - first).days:
        day -= 7
    return first.toordinal() - EPOCH_ORDINAL + day - 1
