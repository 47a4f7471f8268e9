"""A tree as it was left before runs had identities: an index of version 1, documents that say nothing of their origin,
numbers with holes, folders of every family, and things that are none of ours."""

from __future__ import annotations

import json
from pathlib import Path

FOLDERS = ("iteration-0", "iteration-3", "iteration-12", "iteration-7-hook", "iteration-9-sched")
"""All without a marker and without a description."""

INDEX = {
    "version": 1,
    "runs": [
        {"folder": "iteration-3", "created_at": "2025-11-02T01:30:00-05:00", "status": "succeeded"},
        {"folder": "iteration-12", "started_at": "yesterday", "status": "went fine"},
        "iteration-7-hook",
        "iteration-9-sched",
        "iteration-0",
        {"folder": "../elsewhere"},
    ],
}

NONE_OF_OURS = ("iteration-00", "iteration-4-schedule", "iteration", "Iteration-5", "backup", "latest")


def plant(pipeline: Path) -> Path:
    """Makes the tree below the folder of a pipeline and answers its `runs`."""
    runs = pipeline / "runs"
    for name in (*FOLDERS, *NONE_OF_OURS):
        folder = runs / name
        (folder / "linkedin").mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps({"of": name}))
        (folder / "linkedin" / "conversation.json").write_text('["hello"]')
        (folder / "final summary.md").write_text("It went fine.")
    (runs / "iteration-3" / "half.json").write_text('{"of": ')
    (runs / "iteration-3" / "odd.json").write_text('{"identity": {"run_id": "r3"}}')
    (runs / "iteration-12" / "away.json").symlink_to("/etc/hostname")
    (runs / "iteration-99").write_text("A file of this name is no folder.")
    (runs / "run_index.json").write_text(json.dumps(INDEX))
    scores = pipeline / "evaluation" / "runs" / "iteration-0"
    scores.mkdir(parents=True)
    (scores / "report.json").write_text('{"score": 0.7}')
    return runs
