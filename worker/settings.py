"""A worker's settings, from environment variables that begin with ALMANAC_."""

from __future__ import annotations

import socket
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class WorkerSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="ALMANAC_")

    database_url: str
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "almanac"
    storage: Path
    secret_key_file: Path | None = None
    """The same keys as the API's, to open secret parameters for steps, in a file that only its owner may read."""
    worker_name: str = Field(default_factory=socket.gethostname)
    max_concurrent_runs: int = Field(default=4, ge=1, le=10_000)
    """Executions at once in this process."""
    heartbeat_interval_seconds: int = Field(default=30, ge=1, le=600)
    """Six missed ones mean that a worker is lost."""
    record_timeout_seconds: float = Field(default=5.0, gt=0)
    """How long the RUNNING record may take; later it counts as unwritable and nothing is launched."""
    drain_seconds: int = Field(default=20, ge=0)
    """How long executions may go on when the worker is told to stop."""
    max_cached_workflows: int = Field(default=8000, ge=100)
    """Each takes some 100 KB of memory; what is not cached is replayed when it wakes."""
