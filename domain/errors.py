"""What Almanac refuses, and how it says so.

AlmanacError
├── Invalid            400  the request can't be right, whatever the state
├── Unauthenticated    401  no or a wrong bearer token
├── Forbidden          403  known, but not allowed
├── NotFound           404  no such thing here (an id of another workspace is also just this)
├── Conflict           409  right in itself, but not now
├── TooLarge           413  the body is larger than is read
├── OutOfRange         416  a part of a file was asked for that it does not have
├── Busy               429  try again in a moment
└── Unavailable        503  an outside thing (database, Temporal) does not answer

Every refusal has a stable dotted code for programs, a sentence for people, and, where one field is at
fault, the path of that field. A refusal is raised by the rule that knows it and reaches REST, the CLI
and Temporal unchanged.
"""

from __future__ import annotations

from typing import Any, ClassVar


class AlmanacError(Exception):
    """One refusal: `code` for programs, `message` for people, `field` for forms (`schedule.cron`)."""

    status: ClassVar[int] = 500

    def __init__(
        self, code: str, message: str, *, field: str | None = None, hint: str | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.hint = hint
        self.details = details


class Invalid(AlmanacError):
    status = 400


class Unauthenticated(AlmanacError):
    status = 401


class Forbidden(AlmanacError):
    status = 403


class NotFound(AlmanacError):
    status = 404


class Conflict(AlmanacError):
    status = 409


class TooLarge(AlmanacError):
    status = 413


class OutOfRange(AlmanacError):
    status = 416


class Busy(AlmanacError):
    status = 429


class Unavailable(AlmanacError):
    status = 503
