"""Events that wait for the read model, in little room.

An entity carries what it has yet to tell in its state, and a state has to fit into one payload of Temporal (2 MiB),
however long the database is away. Of events that wait, all but the latest are packed: they are much alike, so a bundle
takes a twentieth of their room. Beyond LARGEST_BACKLOG a schedule fires nothing new until the database is back.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable

from pydantic import TypeAdapter

from domain.events import Event, RunChanged
from domain.values import Value

LEFT_OPEN = 32
"""The latest events stay as they are: answers to updates carry them."""
BUNDLE = 128
"""Events in one bundle, which are delivered in one transaction."""
LARGEST_BACKLOG = 8 * 1024 * 1024
"""Bytes of events before they were packed: that is the same wherever a workflow is replayed, what a compressor makes of
them is not."""

_events: TypeAdapter[tuple[Event, ...]] = TypeAdapter(tuple[Event, ...])


class Bundle(Value):
    count: int
    size: int
    """Of its events as JSON, in bytes."""
    data: str
    """That JSON, compressed, in base64."""


def pack(events: Iterable[Event]) -> Bundle:
    kept = tuple(events)
    text = _events.dump_json(kept)
    return Bundle(count=len(kept), size=len(text), data=base64.b64encode(zlib.compress(text)).decode())


def unpack(bundle: Bundle) -> tuple[Event, ...]:
    return _events.validate_json(zlib.decompress(base64.b64decode(bundle.data)))


def bundled(events: tuple[Event, ...]) -> tuple[tuple[Bundle, ...], tuple[Event, ...]]:
    """The oldest of `events` in full bundles, and the others. Views of schedules are not packed: there is only ever the
    newest."""
    changes = [event for event in events if isinstance(event, RunChanged)]
    bundles: list[Bundle] = []
    while len(changes) > BUNDLE + LEFT_OPEN:
        bundles.append(pack(changes[:BUNDLE]))
        changes = changes[BUNDLE:]
    if not bundles:
        return (), events
    return tuple(bundles), (*changes, *(event for event in events if not isinstance(event, RunChanged)))


def is_full(bundles: Iterable[Bundle]) -> bool:
    return sum(bundle.size for bundle in bundles) >= LARGEST_BACKLOG
