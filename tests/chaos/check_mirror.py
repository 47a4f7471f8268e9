"""What is read is what Temporal has; and folders are their runs' own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.evidence import Evidence, Folder, RunRow, Violation

SLOT = "iteration-0"
FAMILY = {"hook": "-hook", "manual": ""}
"""Whatever else a run comes from, its folder ends in `-sched`."""


def schedules_mirrored(evidence: Evidence) -> Iterator[Violation]:
    """Each schedule's row is what its workflow answers; of one that is over the row says so."""
    for life in evidence.lives:
        row = evidence.schedules.get(life.schedule_id)
        if row is None:
            if life.said:
                yield Violation("schedules_mirrored", life.schedule_id, "has a workflow and no row")
        elif life.view is None:
            if row["condition"] != "deleted":
                yield Violation("schedules_mirrored", life.schedule_id, f"is over, and its row says {row['condition']}")
        elif row != life.view:
            other = [name for name in life.view if row.get(name) != life.view[name]]
            words = "; ".join(f"{name}: row {row.get(name)!r}, workflow {life.view[name]!r}" for name in other)
            yield Violation("schedules_mirrored", life.schedule_id, words)
        elif life.view["open_runs"]:
            names = tuple(run["run_id"] for run in life.view["open_runs"])
            yield Violation("schedules_mirrored", life.schedule_id, f"still has open runs: {', '.join(names)}", names)


def runs_mirrored(evidence: Evidence) -> Iterator[Violation]:
    """One workflow for each run that started, which ended as its row says."""
    workflows = [each for each in evidence.workflows if each.workflow_id.startswith("run/")]
    times = Counter(each.workflow_id for each in workflows)
    for each in workflows:
        run_id = each.workflow_id.split("/", 2)[2]
        run = evidence.run.get(run_id)
        problem = None
        if times[each.workflow_id] > 1:
            problem = f"has {times[each.workflow_id]} workflows"
        elif run is None:
            problem = "has a workflow and no row"
        elif each.status == "RUNNING" and run.state != "unknown":
            problem = f"is {run.state}, and its workflow goes on"
        elif each.result is not None and each.result["state"] != run.state:
            problem = f"its row says {run.state}, its workflow {each.result['state']}"
        if problem:
            yield Violation("runs_mirrored", run_id, problem, (run_id,))
    for run in evidence.runs:
        if run.execution_id and f"run/{run.workspace}/{run.run_id}" not in times:
            yield Violation("runs_mirrored", run.run_id, "was executed without a workflow", (run.run_id,))


def tasks_sound(evidence: Evidence) -> Iterator[Violation]:
    """No workflow task failed, other than by the loss of its worker."""
    for each in evidence.workflows:
        for failure in each.failures[:1]:
            yield Violation("tasks_sound", each.workflow_id, failure)


def folders_own(evidence: Evidence) -> Iterator[Violation]:
    """A folder has one run for ever, and tells the same of it as its row."""
    by_marker: defaultdict[str, list[Folder]] = defaultdict(list)
    numbers: Counter[tuple[str, str, str]] = Counter()
    for folder in evidence.folders:
        where = f"{folder.workspace}/{folder.pipeline}/{folder.name}"
        numbers[(folder.workspace, folder.pipeline, folder.name.split("-")[1])] += 1
        if folder.marker is None:
            continue
        by_marker[folder.marker].append(folder)
        if folder.marker not in evidence.run:
            yield Violation("folders_own", where, f"names {folder.marker}, of which there is no row")
    for (workspace, pipeline, number), times in numbers.items():
        if times > 1:
            yield Violation("folders_own", f"{workspace}/{pipeline}", f"{times} folders have the number {number}")
    for run in evidence.runs:
        if run.run_folder is not None:
            problem = _folder_problem(run, by_marker[run.run_id])
            if problem:
                yield Violation("folders_own", run.run_id, problem, (run.run_id,))


def _folder_problem(run: RunRow, found: list[Folder]) -> str | None:
    pipeline = run.target.removeprefix("pipeline:")
    if len(found) != 1:
        return f"{len(found)} folders say that they are its own"
    (folder,) = found
    family = FAMILY.get(run.origin, "-sched")
    if not _is_of_family(folder.name, family) or (folder.workspace, folder.pipeline) != (run.workspace, pipeline):
        return f"its folder is {folder.workspace}/{folder.pipeline}/{folder.name}"
    if run.run_folder not in (folder.name, SLOT):
        return f"its row says {run.run_folder}, its folder is {folder.name}"
    if folder.metadata is None:
        return f"it is {run.state}, and its folder does not say so" if run.state in ("succeeded", "failed") else None
    identity, status = folder.metadata["identity"], folder.metadata["status"]
    for name, own in (("run_id", run.run_id), ("schedule_id", run.schedule_id), ("execution_id", run.execution_id)):
        if identity[name] != own:
            return f"its folder says {name} {identity[name]}, its row {own}"
    if status != run.state and (status is not None or run.state in ("succeeded", "failed")):
        return f"its folder says {status}, its row {run.state}"
    return None


def _is_of_family(name: str, family: str) -> bool:
    number = name.removeprefix("iteration-").removesuffix(family) if family else name.removeprefix("iteration-")
    return name.endswith(family) and number.isdigit()
