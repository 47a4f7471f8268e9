"""Storage that is really full or read-only, for one program in a namespace of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

APART = (shutil.which("unshare") or "unshare", "-m" if os.getuid() == 0 else "-rm")
"""The beginning of a command line whose mounts nobody else sees. Who is root already stays it: root of a namespace of
its own may read less than root."""


def _available() -> bool:
    with contextlib.suppress(FileNotFoundError):
        return subprocess.run([*APART, "true"], check=False, capture_output=True).returncode == 0
    return False


needs_small_disks = pytest.mark.skipif(not _available(), reason="this machine lets nobody mount a disk of their own")


def run_on(mount_point: Path, options: str, program: str) -> str:
    """What `program` prints, which finds at `sys.argv[1]` an empty disk mounted with `options`."""
    script = 'mount -t tmpfs -o "$2" disk "$1" && exec "$3" -c "$4" "$1"'
    done = subprocess.run(
        [*APART, "sh", "-c", script, "sh", mount_point, options, sys.executable, program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
