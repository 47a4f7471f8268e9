"""Workflow code in the SDK's sandbox, without what that costs and gains nothing here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info, SandboxImportNotificationPolicy

_NO_STORE = StorageDriverStoreContext(target=None)


def runner() -> WorkflowRunner:
    """A module that reaches workflow code without being named as passed through is an error."""
    policy = (
        SandboxImportNotificationPolicy.WARN_ON_DYNAMIC_IMPORT
        | SandboxImportNotificationPolicy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
    )
    return _Runner(restrictions=SandboxRestrictions.default.with_import_notification_policy(policy))


@contextmanager
def bytecode_kept() -> Iterator[None]:
    """The sandbox imports a workflow's module anew for each of its runs, which from source takes twice as long. So
    where bytecode is to be kept nowhere, this process keeps its own meanwhile, in a temporary folder."""
    if not sys.dont_write_bytecode:
        yield
        return
    before = sys.pycache_prefix
    with TemporaryDirectory(prefix="almanac-bytecode-") as folder:
        sys.pycache_prefix, sys.dont_write_bytecode = folder, False
        try:
            yield
        finally:
            sys.pycache_prefix, sys.dont_write_bytecode = before, True


@dataclass(frozen=True)
class _Runner(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _WithoutContexts(super().create_instance(det))


class _WithoutContexts(WorkflowInstance):
    """The SDK enters the sandbox for each payload, to ask for the context that a codec or an external storage of
    payloads may want. A worker has neither."""

    def __init__(self, inner: WorkflowInstance) -> None:
        self._inner = inner

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._inner.activate(act)

    def get_serialization_context(self, command_info: object) -> None:
        return None

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return _NO_STORE

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()
