"""Workflow code in the SDK's sandbox, which refuses what no replay could repeat. A worker runs without it."""

from __future__ import annotations

from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy


def sandbox() -> WorkflowRunner:
    """A module that reaches workflow code without being named as passed through is an error."""
    policy = (
        SandboxImportNotificationPolicy.WARN_ON_DYNAMIC_IMPORT
        | SandboxImportNotificationPolicy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
    )
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_import_notification_policy(policy))
