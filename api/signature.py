"""Who sends a webhook: HMAC-SHA256 over the time of sending and the body, under a secret that only the sender has.

    Almanac-Timestamp: 1806994800          seconds since 1970, in UTC
    Almanac-Signature: v1=<hex of HMAC-SHA256(secret, timestamp + "." + body)>

A delivery is taken within WINDOW_SECONDS of its time of sending, so that one that was overheard is soon worth nothing.
Within it, the same time and body are the same run.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime

from domain.errors import Unauthenticated

WINDOW_SECONDS = 300

SCHEME = "v1="
TIMESTAMP = re.compile(r"[0-9]{1,12}")


def new_secret() -> str:
    return f"whs_{secrets.token_urlsafe(32)}"


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """What the header `Almanac-Signature` says."""
    return SCHEME + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def check(known: Sequence[str], timestamp: str, given: str, body: bytes, now: datetime) -> str:
    """The key of this delivery, the same for the same time and body. Raises Unauthenticated: `hook.signature_wrong`
    unless it is signed by one of the `known` secrets, also when there is none, and `hook.timestamp_stale`."""
    # As much work for a webhook that isn't there as for one that is, and for the first secret as for the last.
    candidates = known or (new_secret(),)
    matches = [hmac.compare_digest(sign(secret, timestamp, body).encode(), given.encode()) for secret in candidates]
    if not (known and any(matches) and TIMESTAMP.fullmatch(timestamp)):
        raise Unauthenticated(
            "hook.signature_wrong",
            "There is no such webhook, or the delivery is not signed with its secret.",
            hint='Sign timestamp + "." + body; send Almanac-Timestamp, and Almanac-Signature: v1=<hex of HMAC-SHA256>.',
        )
    if abs(now.timestamp() - int(timestamp)) > WINDOW_SECONDS:
        raise Unauthenticated(
            "hook.timestamp_stale",
            f"The delivery was signed more than {WINDOW_SECONDS} s from now.",
            hint="Sign anew when sending again, and keep the sender's clock right.",
        )
    return hashlib.sha256(timestamp.encode() + b"." + body).hexdigest()
