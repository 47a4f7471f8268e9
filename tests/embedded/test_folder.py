"""The data folder: one owner at a time, its secret to itself, and no mixing with other folders or versions."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from domain.errors import Conflict, NotFound
from embedded.folder import DATA_VERSION, DataFolder, Ports


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with folder.held():
        first = folder.token()
        assert mode(folder.token_file) == 0o600
        folder.token_file.chmod(0o644)
    with folder.held():
        assert folder.token() == first
        assert mode(folder.token_file) == 0o600
    assert len(first) >= 32
    assert mode(folder.root) == 0o700


def test_two_folders_have_two_tokens(tmp_path: Path) -> None:
    folders = [DataFolder(tmp_path / name) for name in ("one", "two")]
    for folder in folders:
        with folder.held():
            pass
    assert folders[0].token() != folders[1].token()


def test_nothing_of_the_folder_is_offered_to_git(tmp_path: Path) -> None:
    with DataFolder(tmp_path / "data").held():
        assert (tmp_path / "data" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("version", [str(DATA_VERSION + 1), "2027.1", "", "²"])
def test_a_folder_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path, version: str) -> None:
    (tmp_path / "version").write_text(f"{version}\n")
    with pytest.raises(Conflict) as refusal, DataFolder(tmp_path).held():
        pass
    assert refusal.value.code == "embedded.data_newer"
    assert version in refusal.value.message
    assert "\n" not in refusal.value.message
    assert os.listdir(tmp_path) == ["version"]


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(Conflict) as refusal, DataFolder(tmp_path).held():
        pass
    assert refusal.value.code == "embedded.data_foreign"
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(Conflict) as refusal, DataFolder(tmp_path / "data").held():
        pass
    assert refusal.value.code == "embedded.data_unusable"


def test_a_second_start_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with DataFolder(tmp_path / "data").held():
        with pytest.raises(Conflict) as refusal, DataFolder(tmp_path / "data").held():
            pass
        assert refusal.value.code == "embedded.already_running"
        assert f"pid {os.getpid()}" in refusal.value.message
    with DataFolder(tmp_path / "data").held():
        pass


def test_later_commands_find_the_api_and_the_token(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    for read in (folder.api_url, folder.token):
        with pytest.raises(NotFound) as refusal:
            read()
        assert refusal.value.code == "embedded.not_set_up"
    with folder.held():
        folder.save_ports(Ports(temporal=1, ui=2, api=3))
    assert DataFolder(tmp_path / "data").api_url() == "http://127.0.0.1:3"
    assert folder.saved_ports() == Ports(temporal=1, ui=2, api=3)
