"""What is kept of a stream, for every way the stream may come in pieces."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from executors.capture import Capture
from executors.masking import MASK


@given(keep=st.integers(1, 20), chunks=st.lists(st.binary(max_size=50), max_size=20))
def test_the_head_and_the_tail_of_any_stream_are_kept(keep: int, chunks: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log")
        path.touch()
        capture = Capture(str(path), keep)
        for chunk in chunks:
            os.write(capture.sink, chunk)
            capture.pump()
        os.close(capture.sink)
        capture.finish()
        os.close(capture.source)
        kept = path.read_bytes()
    stream = b"".join(chunks)
    left_out = max(0, len(stream) - 2 * keep)
    marker = b"\n[%d bytes left out]\n" % left_out if left_out else b""
    assert kept == stream[:keep] + marker + stream[keep + left_out :]
    assert (capture.size, capture.dropped) == (len(stream), left_out)


@given(keep=st.integers(1, 20), chunks=st.lists(st.text("abc-", max_size=20).map(str.encode), max_size=20))
def test_secrets_are_masked_before_anything_is_cut_off(keep: int, chunks: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log")
        path.touch()
        capture = Capture(str(path), keep, [b"abc", b"cab-"])
        for chunk in chunks:
            os.write(capture.sink, chunk)
            capture.pump()
        os.close(capture.sink)
        capture.finish()
        os.close(capture.source)
        kept = path.read_bytes()
    printed = b"".join(chunks)
    masked = re.sub(b"cab-|abc", MASK, printed)
    left_out = max(0, len(masked) - 2 * keep)
    marker = b"\n[%d bytes left out]\n" % left_out if left_out else b""
    assert kept == masked[:keep] + marker + masked[keep + left_out :]
    assert (capture.size, capture.dropped) == (len(printed), left_out)


def test_a_full_disk_loses_output_and_says_how_much() -> None:
    capture = Capture("/dev/full", keep=10)
    os.write(capture.sink, b"0123456789abcdefghij++++")
    os.close(capture.sink)
    assert capture.pump()
    capture.finish()
    os.close(capture.source)
    assert capture.size == 24
    assert capture.dropped >= 24
