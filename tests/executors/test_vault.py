"""What is sealed opens with its key, for its place, and in no other way."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from executors.vault import KeyUnusable, Place, Unopened, Vault

PLACE = Place("acme", "finance/close", "token")
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "key"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_sealed_value_shows_nothing_of_itself_and_opens_again() -> None:
    token = Vault((OLD,)).seal("swordfish", PLACE)
    assert "swordfish" not in token
    assert Vault((OLD,)).open(token, PLACE) == "swordfish"


@pytest.mark.parametrize(
    ("vault", "place", "why"),
    [
        (Vault((NEW,)), PLACE, "another key"),
        (Vault(), PLACE, "no key"),
        (Vault((OLD,)), PLACE._replace(workspace="other"), "another parameter"),
        (Vault((OLD,)), PLACE._replace(pipeline="theirs"), "another parameter"),
        (Vault((OLD,)), PLACE._replace(parameter="shown"), "another parameter"),
    ],
)
def test_nothing_else_opens_it(vault: Vault, place: Place, why: str) -> None:
    with pytest.raises(Unopened, match=why):
        vault.open(Vault((OLD,)).seal("swordfish", PLACE), place)


def test_a_new_key_seals_and_the_old_one_still_opens(tmp_path: Path) -> None:
    token = Vault((OLD,)).seal("swordfish", PLACE)
    both = Vault.at(key_file(tmp_path, f"{NEW}\n{OLD}\n"))
    assert both.open(token, PLACE) == "swordfish"
    assert Vault((NEW,)).open(both.seal("swordfish", PLACE), PLACE) == "swordfish"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [(OLD, 0o644, "chmod 600"), ("", 0o600, "no key in it"), ("short", 0o600, "is no key"), ("ä", 0o600, "be read")],
    ids=["open to others", "empty", "no key", "no text"],
)
def test_a_key_file_that_will_not_do_says_why(tmp_path: Path, text: str, mode: int, said: str) -> None:
    with pytest.raises(KeyUnusable, match=said):
        Vault.at(key_file(tmp_path, text, mode))
    with pytest.raises(KeyUnusable, match="can't be read"):
        Vault.at(tmp_path / "absent")
