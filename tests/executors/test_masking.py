"""No secret gets through, however the stream comes in pieces."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from executors.masking import MASK, Masking

FEW = st.text("abc", min_size=1, max_size=6).map(str.encode)


@given(
    secrets=st.lists(FEW, max_size=4),
    pieces=st.lists(st.text("abcd", max_size=12).map(str.encode), max_size=12),
)
def test_pieces_are_masked_as_the_whole_would_be(secrets: list[bytes], pieces: list[bytes]) -> None:
    masking = Masking(secrets)
    passed = b"".join([masking.feed(piece) for piece in pieces] + [masking.finish()])
    longest_first = sorted(secrets, key=len, reverse=True)
    whole = b"".join(pieces)
    assert passed == (re.sub(b"|".join(longest_first), MASK, whole) if secrets else whole)


def test_only_what_may_become_a_secret_is_held_back() -> None:
    masking = Masking([b"swordfish"])
    assert masking.feed(b"line one\nswo") == b"line one\n"
    assert masking.feed(b"rm\nsword") == b"sworm\n"
    assert masking.feed(b"fish\n") == MASK + b"\n"
    assert masking.finish() == b""
