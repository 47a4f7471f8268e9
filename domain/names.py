"""What a schedule may be called. Names are folder paths, so that a page or a list can show them as a tree."""

from __future__ import annotations

import unicodedata

from domain.errors import Invalid

MAX_LENGTH = 200


def name_key(name: str) -> str:
    """Names with one key are the same name: neither case nor the way an accent is encoded tells two apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check(name: str) -> None:
    """Refuses a name that is not a path of 1 to 200 printable characters.

    Raises Invalid `schedule.validation.name_invalid` with what is wrong with it.
    """
    wrong = _wrong(name)
    if wrong is not None:
        raise Invalid(
            "schedule.validation.name_invalid",
            f"The name {name[:60]!r} {wrong}.",
            field="name",
            hint="A schedule's name is a path such as finance/daily/revenue.",
        )


def _wrong(name: str) -> str | None:
    if not name:
        return "is empty"
    if len(name) > MAX_LENGTH:
        return f"has {len(name)} characters; at most {MAX_LENGTH} are kept"
    if not name.isprintable():
        return "has characters that cannot be printed"
    segments = name.split("/")
    if "" in segments:
        return "has an empty part: a slash at an end, or two in a row"
    if any(segment != segment.strip() for segment in segments):
        return "has a part that begins or ends with a blank"
    if any(segment in (".", "..") for segment in segments):
        return "has a part that is only dots"
    return None
