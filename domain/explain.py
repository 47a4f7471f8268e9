"""Says a pattern in words, from its values, so that the words are true whatever the spelling was."""

from __future__ import annotations

from collections.abc import Sequence

from domain.cron import Pattern

_MONTHS = (
    "January February March April May June July August September October November December".split()
)  # fmt: skip
_WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
_LISTED_TIMES = 6


def in_words(pattern: Pattern) -> str:
    """One sentence without a full stop: `At 09:00 on Monday to Friday in March`."""
    return " ".join(part for part in (_times(pattern), _days(pattern), _months(pattern)) if part)


def _times(pattern: Pattern) -> str:
    minutes, hours = pattern.minutes, pattern.hours
    if len(minutes) * len(hours) <= _LISTED_TIMES:
        return "At " + _listed([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes])
    if len(hours) == 24:
        return _minutes(minutes, "every hour")
    step = _step(hours, 24)
    if step:
        return _minutes(minutes, f"every {_ordinal(step)} hour from midnight")
    named = _listed(_ranges(hours, [f"{hour:02}" for hour in range(24)]))
    return _minutes(minutes, f"{'hour' if len(hours) == 1 else 'hours'} {named}")


def _minutes(minutes: Sequence[int], hours: str) -> str:
    """The minutes of some hours: every one, every n-th, or by name."""
    of_hours = "" if hours == "every hour" else f" of {hours}"
    step = _step(minutes, 60)
    if step == 1:
        return f"Every minute{of_hours}"
    if step:
        return f"Every {step} minutes{of_hours}"
    if len(minutes) == 1:
        return f"At minute {minutes[0]} of {hours}"
    return f"At minutes {_listed(_ranges(minutes, [str(minute) for minute in range(60)]))} of {hours}"


def _days(pattern: Pattern) -> str:
    all_days, all_weekdays = len(pattern.days) == 31, len(pattern.weekdays) == 7
    days = _listed(_ranges(pattern.days, [str(day) for day in range(32)]))
    of_month = f"{'day' if len(pattern.days) == 1 else 'days'} {days} of the month"
    weekdays = _listed(_ranges(_from_monday(pattern.weekdays), [*_WEEKDAYS, "Sunday"]))
    if pattern.either_day:
        return "every day" if all_days or all_weekdays else f"on {of_month} and on every {weekdays}"
    if all_days:
        return "every day" if all_weekdays else f"on {weekdays}"
    if all_weekdays:
        return f"on {of_month}"
    return f"on {of_month} where that is a {_listed(_named(pattern.weekdays), 'or')}"


def _months(pattern: Pattern) -> str:
    if len(pattern.months) == 12:
        return ""
    return f"in {_listed(_ranges(pattern.months, ['', *_MONTHS]))}"


def _from_monday(weekdays: Sequence[int]) -> list[int]:
    """People's weeks end with the weekend: Sunday counts as 7."""
    return sorted(weekday or 7 for weekday in weekdays)


def _named(weekdays: Sequence[int]) -> list[str]:
    return [_WEEKDAYS[weekday % 7] for weekday in _from_monday(weekdays)]


def _step(values: Sequence[int], size: int) -> int | None:
    """The even step of values that begin at 0 and go all the way round, else None."""
    if len(values) < 2:
        return None
    step = values[1] - values[0]
    return step if list(values) == list(range(0, size, step)) and size % step == 0 else None


def _ranges(values: Sequence[int], names: Sequence[str]) -> list[str]:
    """The values by name, with three or more in a row as `first to last`."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    said: list[str] = []
    for run in runs:
        said += [f"{names[run[0]]} to {names[run[-1]]}"] if len(run) > 2 else [names[value] for value in run]
    return said


def _listed(items: Sequence[str], word: str = "and") -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


def _ordinal(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")
