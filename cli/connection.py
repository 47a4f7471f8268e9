"""Finds the server and its token: by option, by environment, else in the data folder that `almanac up` keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DATA_FOLDER = ".almanac"


class Unconfigured(Exception):
    """No server, or no token for it; the message says what to do, in one line."""


@dataclass(frozen=True)
class Connection:
    url: str
    token: str = field(repr=False)


def find(url: str | None, token_file: Path | None, environment: Mapping[str, str], folder: Path) -> Connection:
    """The first of: the options, `ALMANAC_URL` and `ALMANAC_TOKEN_FILE`, a data folder in `folder` or above it.
    The address and the token are looked for separately. Raises Unconfigured."""
    data = _data_folder(folder)
    url = url or environment.get("ALMANAC_URL") or (_address(data) if data else None)
    if not url:
        raise Unconfigured("No server is known here: start one with 'almanac up', or give --url and --token-file.")
    named = token_file or environment.get("ALMANAC_TOKEN_FILE") or (data / "token" if data else None)
    if not named:
        raise Unconfigured(f"There is no token for {url}: give --token-file or set ALMANAC_TOKEN_FILE.")
    try:
        return Connection(url.rstrip("/"), Path(named).read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise Unconfigured(f"The token file {named} can't be read: {error}.") from error


def _data_folder(folder: Path) -> Path | None:
    candidates = (parent / DATA_FOLDER for parent in (folder, *folder.parents))
    return next((data for data in candidates if (data / "config.json").is_file()), None)


def _address(data: Path) -> str | None:
    try:
        address = json.loads((data / "config.json").read_text(encoding="utf-8")).get("api_url")
    except (OSError, ValueError, AttributeError) as error:
        raise Unconfigured(f"{data / 'config.json'} can't be read: {error}. Give --url instead.") from error
    return str(address) if address else None
