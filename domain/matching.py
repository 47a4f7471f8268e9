"""Which local days and minutes a pattern matches, by whole years, so that walking and counting skip what can't match.

A year is one of fourteen calendars: leap or not, by the weekday of 1 January. The matching days of each are worked out
once per pattern. Days are Unix day numbers, readings are local wall clock seconds counted like Unix seconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache

from domain.cron import Pattern
from domain.tzif import DAY, EPOCH_ORDINAL

_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Matcher:
    """The local readings one pattern matches."""

    __slots__ = ("_calendars", "_pattern", "deltas", "seconds")

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._calendars: dict[tuple[int, int], tuple[int, ...]] = {}
        self.seconds = tuple(hour * 3600 + minute * 60 for hour in pattern.hours for minute in pattern.minutes)
        """The matching times of a matching day, in seconds after midnight."""
        self.deltas = tuple(timedelta(seconds=second) for second in self.seconds)

    def days(self, first: int, last: int) -> Iterator[int]:
        """The matching days from `first` to `last`, both included, ascending."""
        for jan1, offsets in self._years(first, last):
            for offset in offsets:
                yield jan1 + offset

    def days_back(self, first: int, last: int) -> Iterator[int]:
        """The matching days from `last` down to `first`, both included."""
        for year in range(_year_of(last), _year_of(first) - 1, -1) if first <= last else ():
            jan1, offsets = self._year(year, first, last)
            for offset in reversed(offsets):
                yield jan1 + offset

    def slices(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """For each matching day with matching readings in `[low, high)`: the day, and the range of `seconds` in it."""
        first, last = low // DAY, (high - 1) // DAY
        seconds, size = self.seconds, len(self.seconds)
        for day in self.days(first, last):
            start = bisect_left(seconds, low - day * DAY) if day == first else 0
            stop = bisect_left(seconds, high - day * DAY) if day == last else size
            if start < stop:
                yield day, start, stop

    def readings_back(self, low: int, high: int) -> Iterator[int]:
        """The matching readings in `[low, high)`, the latest first."""
        for day in self.days_back(low // DAY, (high - 1) // DAY):
            midnight = day * DAY
            for second in reversed(self.seconds):
                if low <= midnight + second < high:
                    yield midnight + second

    def count(self, low: int, high: int) -> int:
        """How many readings in `[low, high)` match, in time that depends on the years between, not on the answer."""
        if low >= high:
            return 0
        first, last = low // DAY, (high - 1) // DAY
        total = sum(len(offsets) for _, offsets in self._years(first, last)) * len(self.seconds)
        for _ in self.days(first, first):
            total -= bisect_left(self.seconds, low - first * DAY)
        for _ in self.days(last, last):
            total -= len(self.seconds) - bisect_left(self.seconds, high - last * DAY)
        return total

    def _years(self, first: int, last: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        for year in range(_year_of(first), _year_of(last) + 1) if first <= last else ():
            yield self._year(year, first, last)

    def _year(self, year: int, first: int, last: int) -> tuple[int, tuple[int, ...]]:
        """The year's 1 January, and the matching days from `first` to `last` counted from it."""
        jan1 = date(year, 1, 1).toordinal() - EPOCH_ORDINAL
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        # Unix day 0 was a Thursday; weekdays count from Sunday.
        key = (leap, (jan1 + 4) % 7)
        offsets = self._calendars.get(key)
        if offsets is None:
            offsets = self._calendars[key] = tuple(self._matching_days(*key))
        if first > jan1 or last < jan1 + 364 + leap:
            offsets = offsets[bisect_left(offsets, first - jan1) : bisect_right(offsets, last - jan1)]
        return jan1, offsets

    def _matching_days(self, leap: int, weekday: int) -> Iterator[int]:
        pattern = self._pattern
        days, weekdays = frozenset(pattern.days), frozenset(pattern.weekdays)
        offset = 0
        for month, length in enumerate(_MONTH_LENGTHS, start=1):
            length += 1 if leap and month == 2 else 0
            for day in range(1, length + 1) if month in pattern.months else ():
                in_days, in_weekdays = day in days, (weekday + offset + day - 1) % 7 in weekdays
                if (in_days or in_weekdays) if pattern.either_day else (in_days and in_weekdays):
                    yield offset + day - 1
            offset += length


def _year_of(day: int) -> int:
    return date.fromordinal(day + EPOCH_ORDINAL).year


@lru_cache(maxsize=512)
def matcher(pattern: Pattern) -> Matcher:
    """The matcher of a pattern; its calendars are filled in as they are asked for."""
    return Matcher(pattern)
