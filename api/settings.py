"""What the API is told by its environment; the only place that reads it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Each field is the environment variable of that name, prefixed by `ALMANAC_`."""

    model_config = SettingsConfigDict(env_prefix="ALMANAC_", frozen=True)

    database_url: str
    """postgresql+asyncpg://…"""
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "almanac"
    storage: Path | None = None
    """The folder of all run folders, to read in; without it the API shows no files and no evidence."""
    token_file: Path
    """The one bearer token, in a file that only its owner may read."""
    secret_key_file: Path | None = None
    """The keys of secret parameters, a line each, in a file that only its owner may read; without it no secret can be
    saved. The first key seals, all of them open."""
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8400, ge=0, le=65_535)
    min_interval_seconds: int = Field(default=300, ge=0)
    """Two occurrences of a schedule may not be closer than this in the 14 days after it is saved."""
    max_schedules_per_workspace: int = Field(default=100, ge=1, le=100_000)
    heartbeat_interval_seconds: int = Field(default=30, ge=1, le=600)
    """Of manual runs. Six missed ones mean that a run's worker is lost."""
    max_body_bytes: int = Field(default=1_000_000, ge=1_000)
