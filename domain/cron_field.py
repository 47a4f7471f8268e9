"""Checks one field of a cron pattern and rewrites it in the plainest spelling, or says what was meant instead.

Plain means numbers only, no one-value ranges and no step of one: spellings on which libraries agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from domain.errors import Invalid

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBER = re.compile(r"[0-9]{1,9}")
_EXTENSION = re.compile(r"[?]|.*#.*|[0-9]*L(?:-[0-9]+)?|[0-9]*L?W|[A-Z]{3}L|[HR](?:\(.*\))?")
_EXTENSION_NAMES = {"?": "`?`", "L": "`L` (last)", "W": "`W` (nearest weekday)", "#": "`#` (n-th weekday)"}


@dataclass(frozen=True, slots=True)
class Field:
    """One of the five fields: its values from `low` to `high`, and the names that stand for some of them."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    first_name: int = 0

    def spelled(self, value: int, *, named: bool) -> str:
        """The value as a person who used names, or numbers, would write it."""
        return self.names[(value - self.first_name) % len(self.names)] if named and self.names else str(value)


FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day-of-month", 1, 31),
    Field("month", 1, 12, _MONTHS, 1),
    Field("day-of-week", 0, 7, _WEEKDAYS, 0),
)


def refuse(kind: str, message: str, hint: str | None = None) -> NoReturn:
    """Raises the refusal of a pattern: `kind` becomes the code `schedule.validation.cron_<kind>`."""
    raise Invalid(f"schedule.validation.cron_{kind}", message, field="cron", hint=hint)


def check_field(field: Field, text: str) -> str:
    """The field's text in plain spelling, such as `1-5/2,0` for `MON-fri/2,SUN`. Raises Invalid."""
    return ",".join(_check_item(field, item, text) for item in text.split(","))


def _check_item(field: Field, item: str, text: str) -> str:
    if not item:
        refuse("list", f"The {field.name} field `{text}` has an empty item in its list.", "Remove the extra comma.")
    base, slash, step_text = item.partition("/")
    if not base:
        _refuse_syntax(field, item, f"Write `*/{step_text}` for a step over the whole field.")
    step = _step(field, item, step_text) if slash else 1
    if base == "*":
        return "*" if step == 1 else f"*/{step}"
    _refuse_extension(field, item, base)
    first_text, dash, last_text = base.partition("-")
    if dash:
        return _check_range(field, item, (first_text, last_text), step)
    value = _value(field, item, base)
    if slash:
        top = min(field.high, 6) if field.names == _WEEKDAYS else field.high
        refuse(
            "step_on_value",
            f"The {field.name} field `{item}` puts a step on a single value, which schedulers read differently.",
            f"Write `{value}-{top}/{step}`." if value < top else f"Write `{value}`.",
        )
    return str(value)


def _step(field: Field, item: str, text: str) -> int:
    if not text:
        _refuse_syntax(field, item, "Write the step after the slash, such as `*/5`.")
    _refuse_extension(field, item, text)
    if not _NUMBER.fullmatch(text):
        _refuse_syntax(field, item, "A step is a whole number, such as `*/5`.")
    step = int(text)
    if step == 0:
        refuse("step_zero", f"The {field.name} field `{item}` has a step of zero.", "A step is 1 or more.")
    if step > field.high:
        only = f"Write `{field.low}`, which is all it could match." if item.startswith("*/") else None
        refuse(
            "step_too_large",
            f"The {field.name} field `{item}` has a step larger than the field, whose largest value is {field.high}.",
            only or f"Use a step of at most {field.high}.",
        )
    return step


def _check_range(field: Field, item: str, ends: tuple[str, str], step: int) -> str:
    first_text, last_text = ends
    if "*" in ends:
        _refuse_syntax(field, item, "Write `*` alone for every value, or both ends of the range.")
    if not first_text or not last_text or "-" in last_text:
        _refuse_syntax(field, item, "A range has two ends and no sign, such as `1-5`.")
    first, last = _value(field, item, first_text), _value(field, item, last_text)
    if last_text.upper() == "SUN" and first > 0:
        last = 7
    if first > last:
        named = first_text.isalpha() and last_text.isalpha()
        _refuse_reversed(field, item, (first, last), step, named=named)
    if first == last:
        return str(first)
    return f"{first}-{last}" if step == 1 else f"{first}-{last}/{step}"


def _refuse_reversed(field: Field, item: str, ends: tuple[int, int], step: int, *, named: bool) -> NoReturn:
    message = f"The {field.name} range `{item}` runs backwards."
    refuse("range_reversed", message, f"Write `{_wrapped(field, ends, step, named=named)}`.")


def _wrapped(field: Field, ends: tuple[int, int], step: int, *, named: bool) -> str:
    """What a backwards range means when it goes on past the end of the field: `22-2` is `22-23,0-2`."""
    first, last = ends
    top = 6 if field.names == _WEEKDAYS else field.high
    if top == 6 and last == 0:
        return f"{first}-7" if step == 1 else f"{first}-7/{step}"
    size = top - field.low + 1
    if step > 1:
        values = [(value - field.low) % size + field.low for value in range(first, last + size + 1, step)]
        return ",".join(field.spelled(value, named=named) for value in values)
    runs = [[field.spelled(value, named=named) for value in run] for run in ((first, top), (field.low, last))]
    return ",".join(low if low == high else f"{low}-{high}" for low, high in runs)


def _value(field: Field, item: str, text: str) -> int:
    if text.upper() in field.names:
        return field.names.index(text.upper()) + field.first_name
    _refuse_extension(field, item, text)
    if text[:1] in "+-" or "_" in text:
        refuse("character", f"The {field.name} field `{item}` has a sign or an underscore.", "Write plain digits.")
    if text.isascii() and text.isalpha():
        _refuse_name(field, item, text)
    if not _NUMBER.fullmatch(text):
        if text.isascii() and text.isdigit():
            _refuse_value(field, item, f"{text[:9]}…")
        _refuse_syntax(field, item, "Use numbers, lists (`1,3`), ranges (`1-5`) and steps (`*/5`).")
    value = int(text)
    if not field.low <= value <= field.high:
        _refuse_value(field, item, str(value))
    return value


def _refuse_value(field: Field, item: str, value: str) -> NoReturn:
    hint = f"Use {field.low} to {field.high}"
    if field.names:
        hint += f", or {field.names[0]} to {field.names[-1]}"
    refuse("value", f"The {field.name} field `{item}` has {value}, which is out of range.", f"{hint}.")


def _refuse_name(field: Field, item: str, text: str) -> NoReturn:
    name = text.upper()
    message = f"The {field.name} field `{item}` has the unknown name `{text}`."
    meant = [known for known in field.names if len(name) >= 2 and (name.startswith(known) or known.startswith(name))]
    if len(meant) == 1:
        refuse("name", message, f"Write `{meant[0]}`.")
    for other in FIELDS:
        if name in other.names:
            refuse("name", message, f"`{name}` belongs in the {other.name} field.")
    known = f"Use {', '.join(field.names)}, or numbers." if field.names else "This field takes numbers only."
    refuse("name", message, known)


def _refuse_extension(field: Field, item: str, text: str) -> None:
    name = text.upper()
    if not _EXTENSION.fullmatch(name):
        return
    sign = next((sign for sign in "?#LW" if sign in name), None)
    said = _EXTENSION_NAMES[sign] if sign else f"`{name[0]}` (a random value)"
    hint = {
        "?": "Write `*`.",
        "L": "List the days, such as `28-31`, and let the job check for the last one.",
        "W": "List the days and restrict the weekdays to `MON-FRI`.",
        "#": "There is no spelling for it: day-of-month and day-of-week together mean either.",
    }.get(sign or "", f"Write a fixed number, such as `{field.low}`.")
    refuse("extension", f"The {field.name} field `{item}` uses {said}, which is not Unix cron.", hint)


def _refuse_syntax(field: Field, item: str, hint: str) -> NoReturn:
    refuse("syntax", f"The {field.name} field `{item}` is not a value, a list, a range or a step.", hint)
