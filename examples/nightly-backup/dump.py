"""Dumps the database to almanac.dump, and counts the rows of every table in the very same snapshot."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO

import server

TABLES = """
SELECT quote_ident(schemaname) || '.' || quote_ident(tablename)
FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1
"""


def main() -> None:
    database = server.find()
    psql = [database.program("psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
    # The session that exported the snapshot has to stay open for as long as others use it.
    with subprocess.Popen(
        psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(database.environment)
    ) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        session.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;\n")
        (snapshot,) = _ask(session.stdin, session.stdout, "SELECT pg_export_snapshot()")
        tables = _ask(session.stdin, session.stdout, TABLES)
        counts = {
            table: int(_ask(session.stdin, session.stdout, f"SELECT count(*) FROM {table}")[0]) for table in tables
        }
        _dump(database, snapshot)
        session.stdin.write("COMMIT;\n")
        session.stdin.close()
    Path("counts.json").write_text(json.dumps(counts, indent=2) + "\n")
    size = Path("almanac.dump").stat().st_size
    print(f"dumped {len(counts)} tables with {sum(counts.values())} rows: almanac.dump, {size} bytes")


def _ask(questions: IO[str], answers: IO[str], query: str) -> list[str]:
    """The rows of a query that answers one column."""
    questions.write(f"{query};\n\\echo .\n")
    questions.flush()
    rows: list[str] = []
    for line in answers:
        if line == ".\n":
            return rows
        if line.strip():
            rows.append(line.strip())
    raise SystemExit("psql ended before it had answered.")


def _dump(database: server.Server, snapshot: str) -> None:
    command = [database.program("pg_dump"), "--format=custom", "--no-owner", f"--snapshot={snapshot}"]
    subprocess.run([*command, "--file=almanac.dump"], env=dict(database.environment), check=True)


if __name__ == "__main__":
    main()
