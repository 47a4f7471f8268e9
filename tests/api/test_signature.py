"""Signatures of webhooks: what is taken, and what is not."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from api import signature
from domain.errors import Unauthenticated

NOW = datetime(2027, 3, 14, 7, tzinfo=UTC)
AT = str(int(NOW.timestamp()))
BODY = b'{"a": 1}'


def refusal(*known: str, at: str = AT, given: str | None = None, body: bytes = BODY, now: datetime = NOW) -> str:
    with pytest.raises(Unauthenticated) as refused:
        signature.check(known, at, signature.sign("right", at, BODY) if given is None else given, body, now)
    return refused.value.code


def test_the_signature_is_an_hmac_of_time_and_body() -> None:
    expected = hmac.new(b"right", f"{AT}.".encode() + BODY, hashlib.sha256).hexdigest()
    assert signature.sign("right", AT, BODY) == f"v1={expected}"


def test_either_of_two_secrets_is_good_and_the_delivery_is_the_same() -> None:
    keys = {signature.check(("new", "old"), AT, signature.sign(by, AT, BODY), BODY, NOW) for by in ("new", "old")}
    assert len(keys) == 1


def test_another_time_or_body_is_another_delivery() -> None:
    later = str(int(AT) + 1)
    keys = {
        signature.check(("right",), at, signature.sign("right", at, body), body, NOW)
        for at, body in ((AT, BODY), (later, BODY), (AT, b""))
    }
    assert len(keys) == 3


@pytest.mark.parametrize("given", ["", "v1=", "v1=00", "\xe9", "v2=" + "0" * 64, "0" * 64])
def test_another_signature_is_refused(given: str) -> None:
    assert refusal("right", given=given) == "hook.signature_wrong"


def test_another_secret_body_or_time_is_refused() -> None:
    assert refusal("wrong") == "hook.signature_wrong"
    assert refusal("right", body=BODY + b" ") == "hook.signature_wrong"
    assert refusal("right", at=str(int(AT) + 1), given=signature.sign("right", AT, BODY)) == "hook.signature_wrong"


def test_no_secret_at_all_is_refused_like_a_wrong_one() -> None:
    assert refusal() == "hook.signature_wrong"


@pytest.mark.parametrize("at", ["", "now", "1.5", "-1", "1e3", " 1", "\u0661", "9" * 13])
def test_a_time_that_is_none_is_refused(at: str) -> None:
    assert refusal("right", at=at) == "hook.signature_wrong"


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_delivery_outside_the_window_is_refused(seconds: int) -> None:
    assert refusal("right", now=NOW + timedelta(seconds=seconds)) == "hook.timestamp_stale"


@pytest.mark.parametrize("seconds", [-300, 300])
def test_the_window_includes_its_ends(seconds: int) -> None:
    assert signature.check(("right",), AT, signature.sign("right", AT, BODY), BODY, NOW + timedelta(seconds=seconds))


def test_secrets_are_long_and_never_the_same() -> None:
    made = {signature.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert min(map(len, made)) >= 40
