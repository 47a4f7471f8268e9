"""The strict grammar: what it accepts means one thing, and what it refuses gets a reason and a spelling."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.cron import Pattern, parse
from domain.errors import Invalid
from tests.domain import oracle
from tests.domain.pattern_text import patterns

REFUSED = [
    # text, code after `schedule.validation.cron_`, what the hint says
    ("", "empty", "0 9 * * 1-5"),
    (" \t\r\n ", "empty", "0 9 * * 1-5"),
    ("@daily", "alias", "`0 0 * * *`"),
    ("@HOURLY", "alias", "`0 * * * *`"),
    ("@weekly", "alias", "`0 0 * * 0`"),
    ("@monthly", "alias", "`0 0 1 * *`"),
    ("@yearly", "alias", "`0 0 1 1 *`"),
    ("@reboot", "alias", "five fields"),
    ("-", "disabled", "pause"),
    ("TZ=Europe/Berlin 0 9 * * *", "zone_prefix", "`timezone`"),
    ("0 9 * *", "field_count", "five fields"),
    ("0 0 9 * * *", "field_count", "`0 9 * * *`"),
    ("0 0 9 * * * 2027", "field_count", "`0 9 * * *`"),
    ("0 9 * * * * * *", "field_count", "five fields"),
    ("0 9 ? * *", "extension", "`*`"),
    ("0 9 L * *", "extension", "`28-31`"),
    ("0 9 L-3 * *", "extension", "`28-31`"),
    ("0 9 LW * *", "extension", "`28-31`"),
    ("0 9 15w * *", "extension", "`MON-FRI`"),
    ("0 9 * * 5L", "extension", "`28-31`"),
    ("0 9 * * FRIL", "extension", "`28-31`"),
    ("0 9 * * MON#2", "extension", "no spelling"),
    ("0 9 * * 1#2", "extension", "no spelling"),
    ("H 9 * * *", "extension", "`0`"),
    ("h/15 9 * * *", "extension", "`0`"),
    ("H(0-29) 9 * * *", "extension", "`0`"),
    ("0 R * * *", "extension", "`0`"),
    ("5/15 * * * *", "step_on_value", "`5-59/15`"),
    ("0 2/4 * * *", "step_on_value", "`2-23/4`"),
    ("0 9 3/7 * *", "step_on_value", "`3-31/7`"),
    ("0 9 * MAR/3 *", "step_on_value", "`3-12/3`"),
    ("0 9 * * 1/2", "step_on_value", "`1-6/2`"),
    ("59/5 * * * *", "step_on_value", "`59`"),
    ("*/0 * * * *", "step_zero", "1 or more"),
    ("10-20/000 * * * *", "step_zero", "1 or more"),
    ("*/60 * * * *", "step_too_large", "`0`"),
    ("0 */24 * * *", "step_too_large", "`0`"),
    ("0 9 */32 * *", "step_too_large", "`1`"),
    ("0 9 * */13 *", "step_too_large", "`1`"),
    ("0 9 * * */8", "step_too_large", "`0`"),
    ("10-20/99999999999999999999 * * * *", "syntax", "whole number"),
    ("0 22-2 * * *", "range_reversed", "`22-23,0-2`"),
    ("50-10 * * * *", "range_reversed", "`50-59,0-10`"),
    ("0 23-0 * * *", "range_reversed", "`23,0`"),
    ("0 22-3/2 * * *", "range_reversed", "`22,0,2`"),
    ("0 9 31-1 * *", "range_reversed", "`31,1`"),
    ("0 9 * NOV-FEB *", "range_reversed", "`NOV-DEC,JAN-FEB`"),
    ("0 9 * 11-2 *", "range_reversed", "`11-12,1-2`"),
    ("0 9 * * FRI-MON", "range_reversed", "`FRI-SAT,SUN-MON`"),
    ("0 9 * * 5-0/2", "range_reversed", "`5-7/2`"),
    ("0 9 * * 5-1", "range_reversed", "`5-6,0-1`"),
    ("0 9 * * 5-0", "range_reversed", "`5-7`"),
    ("60 * * * *", "value", "0 to 59"),
    ("0 24 * * *", "value", "0 to 23"),
    ("0 9 0 * *", "value", "1 to 31"),
    ("0 9 32 * *", "value", "1 to 31"),
    ("0 9 * 0 *", "value", "JAN to DEC"),
    ("0 9 * 13 *", "value", "1 to 12"),
    ("0 9 * * 8", "value", "SUN to SAT"),
    ("0-60 * * * *", "value", "0 to 59"),
    ("99999999999999999999 * * * *", "value", "0 to 59"),
    ("+5 * * * *", "character", "plain digits"),
    ("-5 * * * *", "syntax", "two ends"),
    ("1_0 * * * *", "character", "plain digits"),
    ("٣ * * * *", "character", "ASCII"),
    ("² * * * *", "character", "ASCII"),
    ("\uff15 * * * *", "character", "ASCII"),
    ("0\u00a09 * * *", "character", "ASCII"),
    ("\u20030 9 * * *", "character", "ASCII"),
    ("0 9\n* * *", "character", "ASCII"),
    ("0 9 * * *\x00", "character", "ASCII"),
    ("0 9 * * MONDAY", "name", "`MON`"),
    ("0 9 * * MO", "name", "`MON`"),
    ("0 9 * * T", "name", "SUN, MON"),
    ("0 9 * JAnuary *", "name", "`JAN`"),
    ("0 9 * MON *", "name", "day-of-week"),
    ("0 9 * * JAN", "name", "month field"),
    ("0 9 MON * *", "name", "day-of-week"),
    ("MON 9 * * *", "name", "day-of-week"),
    ("XYZ 9 * * *", "name", "numbers only"),
    (",5 * * * *", "list", "extra comma"),
    ("5,,6 * * * *", "list", "extra comma"),
    ("5, * * * *", "list", "extra comma"),
    ("5- * * * *", "syntax", "two ends"),
    ("1-2-3 * * * *", "syntax", "two ends"),
    ("*-5 * * * *", "syntax", "both ends"),
    ("5-* * * * *", "syntax", "both ends"),
    ("*5 * * * *", "syntax", "lists"),
    ("** * * * *", "syntax", "lists"),
    ("*/ * * * *", "syntax", "after the slash"),
    ("/5 * * * *", "syntax", "`*/5`"),
    ("*/5/5 * * * *", "syntax", "whole number"),
    ("*/1.5 * * * *", "syntax", "whole number"),
    ("*/-2 * * * *", "syntax", "whole number"),
    ("0x10 * * * *", "syntax", "lists"),
    ("1.5 * * * *", "syntax", "lists"),
    ("0 9 30 2 *", "never", "28"),
    ("0 9 31 4,6,9,11 *", "never", "28"),
    ("0 9 30-31 2 *", "never", "28"),
    ("0 9 31 4 */2", "never", "28"),
    ("0 9 30 2 *,MON", "never", "28"),
    ("0," * 600 + "0 * * * *", "too_long", None),
    (None, "type", "0 9 * * 1-5"),
    (5, "type", "0 9 * * 1-5"),
    (b"0 9 * * *", "type", "0 9 * * 1-5"),
    (["0 9 * * *"], "type", "0 9 * * 1-5"),
]


@pytest.mark.parametrize(("expr", "code", "hint"), REFUSED)
def test_refusals_have_their_own_code_and_the_spelling_that_was_meant(expr: str, code: str, hint: str | None) -> None:
    with pytest.raises(Invalid) as refusal:
        parse(expr)
    assert refusal.value.code == f"schedule.validation.cron_{code}"
    assert refusal.value.field == "cron"
    assert refusal.value.message.endswith(".")
    assert (hint or "") in (refusal.value.hint or "")


SUGGESTED = [
    case[0] for case in REFUSED if case[1] in ("alias", "step_on_value", "range_reversed") and case[0] != "@reboot"
]


@pytest.mark.parametrize("expr", SUGGESTED)
def test_suggested_spellings_are_accepted(expr: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse(expr)
    wrong, suggested = refusal.value.message.split("`")[1], (refusal.value.hint or "").split("`")[1]
    parse(expr.replace(wrong, suggested))


MEANT = [
    # text, minutes, hours, days, months, weekdays, either day field may match
    ("5 9 * * *", (5,), (9,), "all", "all", "all", False),
    (" 05 09 01 01 * ", (5,), (9,), (1,), (1,), "all", False),
    ("0\t9   * * *", (0,), (9,), "all", "all", "all", False),
    ("10-20/5,40 8-9 * * *", (10, 15, 20, 40), (8, 9), "all", "all", "all", False),
    ("5,5,5 5-5 * * *", (5,), (5,), "all", "all", "all", False),
    ("0 9 * JAN-mar/2 mon-FRI", (0,), (9,), "all", (1, 3), (1, 2, 3, 4, 5), False),
    ("0 9 * * 0,7", (0,), (9,), "all", "all", (0,), False),
    ("0 9 * * 7-7", (0,), (9,), "all", "all", (0,), False),
    ("0 9 * * 0-0", (0,), (9,), "all", "all", (0,), False),
    ("0 9 * * SUN-SUN", (0,), (9,), "all", "all", (0,), False),
    ("0 9 * * SAT-SUN", (0,), (9,), "all", "all", (0, 6), False),
    ("0 9 * * fri-sun/2", (0,), (9,), "all", "all", (0, 5), False),
    ("0 9 * * 5-7", (0,), (9,), "all", "all", (0, 5, 6), False),
    ("0 9 * * 0-7", (0,), (9,), "all", "all", "all", False),
    ("0 9 * * */7", (0,), (9,), "all", "all", (0,), False),
    ("0 9 13 * 5", (0,), (9,), (13,), "all", (5,), True),
    ("0 9 1-31 * 1", (0,), (9,), "all", "all", (1,), True),
    ("0 9 */2 * 1", (0,), (9,), tuple(range(1, 32, 2)), "all", (1,), False),
    ("0 9 *,13 * 1", (0,), (9,), "all", "all", (1,), False),
    ("0 9 13,* * 1", (0,), (9,), "all", "all", (1,), True),
    ("0 9 30 2 1", (0,), (9,), (30,), (2,), (1,), True),
    ("*/59 */23 */31 */12 *", (0, 59), (0, 23), (1,), (1,), "all", False),
]


@pytest.mark.parametrize("case", MEANT, ids=[case[0] for case in MEANT])
def test_fields_expand_to_what_they_mean(case: tuple[object, ...]) -> None:
    expr, minutes, hours, *rest, either_day = case
    full = (tuple(range(1, 32)), tuple(range(1, 13)), tuple(range(7)))
    days, months, weekdays = (values if given == "all" else given for given, values in zip(rest, full, strict=True))
    assert isinstance(expr, str)
    assert parse(expr) == Pattern(expr.strip(), minutes, hours, days, months, weekdays, either_day)  # type: ignore[arg-type]


FIELDS = [
    ("minutes", "{} * * * *", 0, 59),
    ("hours", "0 {} * * *", 0, 23),
    ("days", "0 0 {} * 0", 1, 31),
    ("months", "0 0 1 {} *", 1, 12),
    ("weekdays", "0 0 * * {}", 0, 7),
]


@pytest.mark.parametrize(("field", "shape", "low", "high"), FIELDS)
def test_every_value_range_and_step_of_a_field_expands_exactly(field: str, shape: str, low: int, high: int) -> None:
    spelled = [str(value) for value in range(low, high + 1)]
    spelled += [f"*/{step}" for step in range(1, high + 1)]
    pairs = [(first, last) for first, last in product(range(low, high + 1), repeat=2) if first <= last]
    spelled += [f"{first}-{last}" for first, last in pairs]
    spelled += [f"{first}-{last}/{step}" for first, last in pairs for step in (1, 2, 3, 7, high)]
    for text in spelled:
        got = getattr(parse(shape.format(text)), field)
        wanted = oracle.values(text, low, high)
        assert set(got) == ({value % 7 for value in wanted} if high == 7 else wanted), text
        assert list(got) == sorted(set(got)), text


@given(st.text())
def test_no_text_gets_anything_but_a_pattern_or_a_refusal(text: str) -> None:
    _pattern_or_refusal(text)


@settings(max_examples=1000)
@given(st.text("0123456789*/,-?LW#HR@JANMONSUN _+.\t\n", max_size=40))
def test_no_near_pattern_gets_anything_but_a_pattern_or_a_refusal(text: str) -> None:
    _pattern_or_refusal(text)


@settings(max_examples=1000)
@given(patterns(), st.integers(0, 60), st.text("0123456789*/,-LW#ANUS٣ ", max_size=2), st.integers(0, 2))
def test_no_spoiled_pattern_gets_anything_but_a_pattern_or_a_refusal(text: str, at: int, new: str, cut: int) -> None:
    _pattern_or_refusal(text[:at] + new + text[at + cut :])


def _pattern_or_refusal(text: str) -> None:
    pattern: Pattern | None = None
    with suppress(Invalid):
        pattern = parse(text)
    if pattern is None:
        return
    assert parse(pattern.text) == pattern
    assert pattern.minutes
    assert pattern.hours
    minute, hour, day, month, weekday = pattern.text.split()
    assert set(pattern.minutes) == oracle.values(minute.upper(), 0, 59)
    assert set(pattern.hours) == oracle.values(hour.upper(), 0, 23)
    assert set(pattern.days) == oracle.values(day.upper(), 1, 31)
    assert set(pattern.months) == oracle.values(month.upper(), 1, 12)
    assert set(pattern.weekdays) == {value % 7 for value in oracle.values(weekday.upper(), 0, 7)}
