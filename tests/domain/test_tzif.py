"""The zone file reader: bytes that are no zone file, and closing rules of every form the format allows."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from domain.tzif import Changes, read


def _file(footer: str, offset: int) -> bytes:
    """A zone file with one offset, no listed change, and a closing rule."""
    header = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 0, 1, 4)
    block = struct.pack(">lBB", offset, 0, 0) + b"XXX\0"
    return (header + block) * 2 + f"\n{footer}\n".encode()


def _at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("footer", "year", "begin", "end"),
    [
        ("EST5EDT,M3.2.0,M11.1.0", 2027, "2027-03-14T07:00", "2027-11-07T06:00"),
        ("XST5XDT,J60/0,J300/0", 2027, "2027-03-01T05:00", "2027-10-27T04:00"),
        ("XST5XDT,J60/0,J300/0", 2028, "2028-03-01T05:00", "2028-10-27T04:00"),
        ("XST5XDT,J59/0,J300/0", 2028, "2028-02-28T05:00", "2028-10-27T04:00"),
        ("XST5XDT,59/0,299/0", 2027, "2027-03-01T05:00", "2027-10-27T04:00"),
        ("XST5XDT,59/0,299/0", 2028, "2028-02-29T05:00", "2028-10-26T04:00"),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2027, "2027-03-28T01:00", "2027-10-31T01:00"),
        ("IST-2IDT,M3.4.4/26,M10.5.0", 2027, "2027-03-26T00:00", "2027-10-30T23:00"),
        ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2027, "2027-10-02T15:30", "2027-04-03T15:00"),
        ("XST5XDT4:29:30,M5.5.6/2:30:15,M12.5.5/167", 2027, "2027-05-29T07:30:15", "2028-01-07T03:29:30"),
    ],
)
def test_closing_rules_are_followed(footer: str, year: int, begin: str, end: str) -> None:
    standard = {"E": -18_000, "X": -18_000, "I": 7200}.get(footer[0], 37_800 if "1030" in footer else -7200)
    instants = [instant for instant, _ in read(_file(footer, standard), 2200).changes]
    assert {_at(begin), _at(end)} <= set(instants)
    assert sum(_at(f"{year}-01-10T00:00") <= instant < _at(f"{year + 1}-01-10T00:00") for instant in instants) == 2


def test_summer_time_that_never_ends_is_no_change() -> None:
    changes = read(_file("XST3XDT2,0/0,J365/25", -7200), 2030).changes
    assert all(offset == -7200 for _, offset in changes[:-1])


def test_a_rule_without_summer_time_changes_nothing() -> None:
    assert read(_file("JST-9", 32_400), 2200) == Changes(32_400, ())


@pytest.mark.parametrize(
    "data",
    [b"", b"TZif", b"nothing of the kind" * 10, b"TZif" + b"\0" * 40, _file("EST5EDT,here,there,everywhere", -18_000)],
)
def test_what_is_no_zone_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"TZif|ends early|can't be read"):
        read(data, 2200)
