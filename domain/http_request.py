"""A request that a step sends, and what may stand in it for a value."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from domain import placeholders
from domain.values import Value

HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]*$", max_length=8192)]


class HttpRequest(Value):
    """A request that is sent once. In the address, the headers and every text of the body `${name}` stands for a
    parameter or for a variable that all groups have, and `$$` for a dollar sign."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]", max_length=8192)]
    """What stands for a part of it is written as such a part needs it."""
    headers: Annotated[dict[HeaderName, HeaderValue], Field(max_length=100)] = {}
    body: JsonValue = None
    """A text is sent as it is, everything else as JSON; nothing without it."""
    expected_status: Annotated[tuple[Annotated[int, Field(ge=100, le=599)], ...], Field(max_length=100)] = ()
    """Which answers are a success: 200 to 299 unless it is given."""


def check_request(request: HttpRequest, known: set[str], field: str) -> None:
    """Refuses what names something that the request does not have. `known` is what it may name."""
    placeholders.check(_parts(request), known, field)


def _parts(request: HttpRequest) -> dict[str, list[str]]:
    """Every text of a request that may name something, by the part that it is in."""
    return {
        "url": [request.url],
        "headers": list(request.headers.values()),
        "body": list(placeholders.texts(request.body)),
    }
