"""The five-field cron grammar, stricter than any library's, and each refusal with the spelling that was meant.

Real crons and libraries disagree about everything beyond plain values, lists, ranges and steps, so the rest is refused
before a library sees it. What is left is written out plainly and expanded by croniter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from croniter import croniter

from domain.cron_field import FIELDS, Field, check_field, refuse

MAX_LENGTH = 1000
_BLANKS = " \t\r\n"
_FIVE = "Write five fields: minute hour day-of-month month day-of-week."
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked cron pattern: its text without surrounding blanks, and the values of each field in ascending order.

    Weekdays count from 0, Sunday, to 6. `either_day` says how the two day fields combine: where both are restricted
    (neither text begins with `*`) a day needs to match one of them, else both.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either_day: bool


def parse(expr: str) -> Pattern:
    """The pattern of a five-field cron expression.

    Raises Invalid (`schedule.validation.cron_*`, field `cron`) for anything but the strict grammar: values, lists,
    ranges, steps on `*` or on a range, JAN-DEC and SUN-SAT in any case; and for a pattern that can match no date.
    """
    if not isinstance(expr, str):
        refuse("type", f"A cron pattern is text, not {type(expr).__name__}.", "Write it as `0 9 * * 1-5`.")
    text = expr.strip(_BLANKS)
    if len(text) > MAX_LENGTH:
        refuse("too_long", f"The cron pattern has {len(text)} characters; at most {MAX_LENGTH} are read.")
    return _parse(text)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Pattern:
    _refuse_other_forms(text)
    parts = _split(text)
    plain = [check_field(field, part) for field, part in zip(FIELDS, parts, strict=True)]
    expanded, _ = croniter.expand(" ".join(plain))
    minutes, hours, days, months, weekdays = map(_values, FIELDS, expanded)
    either_day = not parts[2].startswith("*") and not parts[4].startswith("*")
    pattern = Pattern(text, minutes, hours, days, months, weekdays, either_day)
    _refuse_never(pattern)
    return pattern


def _values(field: Field, expanded: Sequence[int | str]) -> tuple[int, ...]:
    """croniter writes `*` for a full field."""
    top = 6 if field is FIELDS[4] else field.high
    if "*" in expanded:
        return tuple(range(field.low, top + 1))
    return tuple(sorted({int(value) % 7 if field is FIELDS[4] else int(value) for value in expanded}))


def _refuse_other_forms(text: str) -> None:
    if not text:
        refuse("empty", "The cron pattern is empty.", "Write five fields, such as `0 9 * * 1-5`.")
    strange = next((sign for sign in text if not (sign in " \t" or "!" <= sign <= "~")), None)
    if strange is not None:
        refuse(
            "character",
            f"The cron pattern has the character U+{ord(strange):04X}, which is no plain digit, letter or blank.",
            "Retype the pattern with plain ASCII digits and spaces.",
        )
    if text.startswith("@"):
        meant = _ALIASES.get(text.lower())
        refuse("alias", f"`{text}` is an alias, not a five-field pattern.", f"Write `{meant}`." if meant else _FIVE)
    if text == "-":
        refuse("disabled", "`-` is no pattern.", "To stop a schedule from firing, pause it.")
    if "=" in text.split()[0]:
        refuse("zone_prefix", f"`{text.split()[0]}` does not belong in the pattern.", "Give the zone in `timezone`.")


def _split(text: str) -> list[str]:
    parts = text.split()
    if len(parts) == 5:
        return parts
    hint = _FIVE
    if len(parts) == 6:
        hint = f"Patterns have no seconds or years. If the first field is seconds, write `{' '.join(parts[1:])}`."
    elif len(parts) == 7:
        hint = f"Patterns have no seconds or years: write `{' '.join(parts[1:6])}`."
    return refuse("field_count", f"The cron pattern has {len(parts)} fields; it takes five.", hint)


def _refuse_never(pattern: Pattern) -> None:
    """Where either day field may match, some weekday always does; every date there is falls on each weekday in time."""
    if pattern.either_day or any(pattern.days[0] <= _DAYS_IN_MONTH[month - 1] for month in pattern.months):
        return
    refuse(
        "never",
        f"`{pattern.text}` can never match: no month of it has a day {pattern.days[0]}.",
        "Choose a day that exists, such as 28.",
    )
