"""Says a pattern in words, from its values, so that the words are true whatever the spelling was."""

from __future__ import annotations

from collections.abc import Sequence

from domain.cron import Pattern

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LISTED_TIMES = 6


def in_words(pattern: Pattern) -> str:
    """One sentence without a full stop: `At 09:00 on Monday to Friday in March`."""
    return " ".join(part for part in (_times(pattern), _days(pattern)) if part)


def _times(pattern: Pattern) -> str:
    minutes, hours = pattern.minutes, pattern.hours
    if len(minutes) * len(hours) <= _LISTED_TIMES:
        return "At " + _listed([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes])
    every = _step(minutes, 60)
    if every is None:
        said = _listed(_ranges(minutes, [str(minute) for minute in range(60)]))
        return f"At {'minute' if len(minutes) == 1 else 'minutes'} {said} of {_hours(hours)}"
    said = "Every minute" if every == 1 else f"Every {every} minutes"
    if len(hours) == 24:
        return said
    if hours[-1] - hours[0] == len(hours) - 1:
        return f"{said} from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[-1]:02}"
    return f"{said} in {_hours(hours)}"


def _hours(hours: Sequence[int]) -> str:
    if len(hours) == 24:
        return "every hour"
    step = _step(hours, 24)
    if step:
        return f"every {_ordinal(step)} hour from midnight"
    return f"{'hour' if len(hours) == 1 else 'hours'} {_listed(_ranges(hours, [f'{hour:02}' for hour in range(24)]))}"


def _days(pattern: Pattern) -> str:
    all_days, all_weekdays = len(pattern.days) == 31, len(pattern.weekdays) == 7
    months = "" if len(pattern.months) == 12 else _listed(_ranges(pattern.months, ["", *_MONTHS]))
    in_months = f" in {months}" if months else ""
    days = _listed(_ranges(pattern.days, [str(day) for day in range(32)]))
    of_month = f"on {'day' if len(pattern.days) == 1 else 'days'} {days} of {months or 'the month'}"
    weekdays = _listed(_ranges(_from_monday(pattern.weekdays), [*_WEEKDAYS, "Sunday"]))
    if (all_days and all_weekdays) or (pattern.either_day and (all_days or all_weekdays)):
        # Of a pattern that is due every hour it goes without saying.
        return in_months.strip() if len(pattern.hours) == 24 else f"every day{in_months}"
    if pattern.either_day:
        return f"{of_month} and on every {weekdays}{in_months}"
    if all_days:
        return f"on {weekdays}{in_months}"
    return of_month if all_weekdays else f"{of_month} where that is a {_listed(_named(pattern.weekdays), 'or')}"


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
