"""Finds the server and its token: by option, by environment, else in the data folder that `almanac up` keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.errors import NotFound
from embedded.folder import DataFolder

DATA_FOLDER = ".almanac"


class Unconfigured(Exception):
    """No server, or no token for it; the message says what to do, in one line."""


@dataclass(frozen=True)
class Connection:
    url: str
    token: str = field(repr=False)


def find(url: str | None, token_file: Path | None, environment: Mapping[str, str], here: Path) -> Connection:
    """Address and token, each the first of: the option; `ALMANAC_URL` and `ALMANAC_TOKEN_FILE`; the data folder named
    by `ALMANAC_DATA`, else the `.almanac` in `here` or the nearest folder above. Raises Unconfigured."""
    named = environment.get("ALMANAC_DATA")
    data = DataFolder(Path(named) if named else _nearest(here))
    return Connection(
        (url or environment.get("ALMANAC_URL") or _address(data)).rstrip("/"),
        _token(token_file or environment.get("ALMANAC_TOKEN_FILE") or data.token_file),
    )


def _nearest(here: Path) -> Path:
    folders = (folder / DATA_FOLDER for folder in (here, *here.parents))
    return next((folder for folder in folders if (folder / "config.json").is_file()), here / DATA_FOLDER)


def _address(data: DataFolder) -> str:
    try:
        return data.api_url()
    except NotFound as error:
        raise Unconfigured(
            "No server is known here: start one with 'almanac up', or give --url and --token-file."
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise Unconfigured(f"The data folder {data.root} can't be read: {error}. Give --url instead.") from error


def _token(file: str | Path) -> str:
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unconfigured(f"The token file can't be read: {error}. Give --token-file.") from error
