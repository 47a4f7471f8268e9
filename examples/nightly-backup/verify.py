"""Reads the dump back without a server and counts its rows; succeeds only if they are the database's."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import server

NAME = r'(?:"(?:[^"]|"")+"|[^". ]+)'
COPY = re.compile(rf"^COPY ({NAME}\.{NAME}) \(.*\) FROM stdin;$")
END_OF_ROWS = "\\."


def main() -> None:
    dump = Path("almanac.dump")
    expected: dict[str, int] = json.loads(Path("counts.json").read_text())
    found = _rows_in(dump)
    if found != expected:
        differ = sorted(t for t in {*found, *expected} if found.get(t) != expected.get(t))
        wrong = [f"{table}: {found.get(table)} of {expected.get(table)} rows" for table in differ]
        raise SystemExit("The dump is not the database: " + "; ".join(wrong))
    backup: dict[str, Any] = {
        "file": dump.name,
        "bytes": dump.stat().st_size,
        "sha256": hashlib.sha256(dump.read_bytes()).hexdigest(),
        "rows": found,
    }
    Path("backup.json").write_text(json.dumps(backup, indent=2) + "\n")
    print(f"read back {sum(found.values())} rows of {len(found)} tables, sha256 {backup['sha256'][:16]}")


def _rows_in(dump: Path) -> dict[str, int]:
    """Rows by table. The dump's whole content is unpacked, so one that was cut short does not pass."""
    command = [server.find().program("pg_restore"), "--data-only", "--file=-", str(dump)]
    counts: dict[str, int] = {}
    table = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as restore:
        assert restore.stdout is not None
        for line in restore.stdout:
            opened = COPY.match(line) if table is None else None
            if opened:
                table = opened[1]
                counts[table] = 0
            elif table is not None and line.rstrip("\n") == END_OF_ROWS:
                table = None
            elif table is not None:
                counts[table] += 1
    if restore.returncode != 0:
        raise SystemExit(f"pg_restore can't read {dump}: exit code {restore.returncode}")
    return counts


if __name__ == "__main__":
    main()
