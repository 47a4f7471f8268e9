"""Where the database is, and the PostgreSQL programs that fit it.

Almanac on one machine keeps PostgreSQL's data beside the run folders, and PostgreSQL itself writes down there where it
listens and which program it is. For any other server set libpq's own variables (PGHOST, PGDATABASE, PGPASSFILE, ...) in
the `environment` of both steps; the programs are then those on PATH.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NAME = "almanac"
"""User and database of Almanac on one machine."""


class Server(NamedTuple):
    programs: Path | None
    """The folder of `pg_dump` and `psql`; None where PATH knows it."""
    environment: Mapping[str, str]

    def program(self, name: str) -> str:
        return str(self.programs / name) if self.programs else name


def find() -> Server:
    if "PGHOST" in os.environ:
        return Server(None, os.environ)
    data = _data(Path(os.environ["ALMANAC_RUN_FOLDER"]))
    _pid, _data_folder, _started, port, socket_folder, *_ = (data / "postmaster.pid").read_text().splitlines()
    program = (data / "postmaster.opts").read_text().split(' "')[0].strip()
    address = {"PGHOST": socket_folder, "PGPORT": port, "PGUSER": NAME, "PGDATABASE": NAME}
    return Server(Path(program).parent, {**os.environ, **address})


def _data(run_folder: Path) -> Path:
    for folder in run_folder.parents:
        if (folder / "postgres" / "postmaster.pid").is_file():
            return folder / "postgres"
    raise SystemExit("No database runs beside the run folders; set PGHOST in the step's environment.")
