"""The recorded histories, one file for each workflow run: `recorded/<scenario>/<number>-<kind>.json.gz`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

FOLDER = Path(__file__).with_name("recorded")


def files() -> list[Path]:
    return sorted(FOLDER.glob("*/*.json.gz"))


def raw(file: Path) -> dict[str, Any]:
    history: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return history


def parsed(history: dict[str, Any]) -> WorkflowHistory:
    workflow_id = history["events"][0]["workflowExecutionStartedEventAttributes"]["workflowId"]
    return WorkflowHistory.from_json(workflow_id, history)
