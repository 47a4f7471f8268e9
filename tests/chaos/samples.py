"""A small chaos run in which all is right, made by hand: a parent and a dependent, due each minute, in a lane each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.chaos.evidence import Claim, Evidence, Folder, Life, Line, RunRow, Said, TrailRow, Workflow

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC).timestamp()
MINUTE = 60.0
PAUSED = NOON + 2.5 * MINUTE
FENCE = 14.0
HANDED = 10_000


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def definition(name: str, *parents: str) -> dict[str, Any]:
    return {"name": name, "cron": "* * * * *", "timezone": "UTC", "after_schedule_ids": list(parents) or None}


def life(name: str, *parents: str) -> Life:
    """Created at noon, paused two and a half minutes later."""
    body = {"definition": definition(name, *parents), "target": f"pipeline:{name}", "workspace_active": True}
    said = (Said(NOON, "create", body), Said(PAUSED, "pause", {"by": "somebody"}))
    tasks = tuple(NOON + second for second in (0.0, 60.0, 62.0, 120.0, 122.0, 150.0))
    return Life("default", name, said, tasks, view(name))


def view(name: str) -> dict[str, Any]:
    return {"schedule_id": name, "condition": "paused", "open_runs": []}


def run(name: str, due: float, *, waits_for: str | None = None) -> RunRow:
    """Recorded when due, begun a second (a dependent: five) later, and two seconds at work."""
    began = due + (5 if waits_for else 1)
    wait = {"schedule_id": waits_for, "occurrence": iso(due)}
    waited = (
        TrailRow(1, due, "recorded", "waiting", "dependency"),
        TrailRow(2, due + 4, "released", "queued", None),
    )
    recorded = waited if waits_for else (TrailRow(1, due, "recorded", "queued", None),)
    trail = (
        *recorded,
        TrailRow(HANDED + 1, began, "claimed", "starting", None),
        TrailRow(HANDED + 2, began, "started", "running", None),
        TrailRow(HANDED + 3, began + 2, "finished", "succeeded", None),
    )
    run_id = f"{name}-{round((due - NOON) / MINUTE)}"
    return RunRow(
        run_id=run_id,
        workspace="default",
        schedule_id=name,
        origin="cron",
        state="succeeded",
        reason=None,
        seq=trail[-1].seq,
        scheduled_for=due,
        target=f"pipeline:{name}",
        revision=1,
        recorded_at=due,
        started_at=began,
        ended_at=began + 2,
        execution_id=f"execution-{run_id}",
        run_folder=f"iteration-{run_id.rpartition('-')[2]}-sched",
        stands_in=None,
        missed=None,
        start_by=due + 86_400,
        waits_for=(wait,) if waits_for else (),
        trail=trail,
        record={"reference_zone": "UTC"},
    )


def lines(row: RunRow) -> tuple[Line, ...]:
    assert row.started_at is not None
    told = (("began", 0.1), ("ended", 1.9))
    return tuple(
        Line(row.started_at + after, what, row.run_id, str(row.execution_id), row.schedule_id, "step-0", 7)
        for what, after in told
    )


def folder(row: RunRow) -> Folder:
    identity = {"run_id": row.run_id, "schedule_id": row.schedule_id, "execution_id": row.execution_id}
    metadata = {"identity": identity, "status": row.state}
    return Folder("default", str(row.schedule_id), str(row.run_folder), row.run_id, metadata)


def calm() -> Evidence:
    dues = (NOON + MINUTE, NOON + 2 * MINUTE)
    rows = [run("parent", due) for due in dues] + [run("child", due, waits_for="parent") for due in dues]
    return Evidence(
        until=NOON + 5 * MINUTE,
        fence_seconds=FENCE,
        steps={("default", "parent"): 1, ("default", "child"): 1},
        runs=tuple(rows),
        schedules={name: view(name) for name in ("parent", "child")},
        lives=(life("parent"), life("child", "parent")),
        workflows=tuple(
            Workflow(f"run/default/{row.run_id}", "almanac.run", "COMPLETED", {"state": row.state}, ()) for row in rows
        ),
        claims=tuple(Claim(str(row.execution_id), row.run_id, "worker-1", "ended", row.state) for row in rows),
        ledger=tuple(line for row in rows for line in lines(row)),
        folders=tuple(folder(row) for row in rows),
        asks=(),
        halts=(),
    )


def but(evidence: Evidence, run_id: str, **changes: Any) -> Evidence:
    """With other fields in one run's row."""
    rows = tuple(replace(row, **changes) if row.run_id == run_id else row for row in evidence.runs)
    return replace(evidence, runs=rows)


def without(evidence: Evidence, run_id: str) -> Evidence:
    """As if nothing had become of the run's occurrence."""
    return replace(
        evidence,
        runs=tuple(row for row in evidence.runs if row.run_id != run_id),
        workflows=tuple(each for each in evidence.workflows if each.workflow_id != f"run/default/{run_id}"),
        claims=tuple(claim for claim in evidence.claims if claim.run_id != run_id),
        ledger=tuple(line for line in evidence.ledger if line.run != run_id),
        folders=tuple(each for each in evidence.folders if each.marker != run_id),
    )
