"""Storage that is really full or read-only, for one program in a namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _available() -> bool:
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    tried = subprocess.run([unshare, "-rm", "true"], check=False, capture_output=True)
    return tried.returncode == 0


needs_small_disks = pytest.mark.skipif(not _available(), reason="this machine lets nobody mount a disk of their own")


def run_on(mount_point: Path, options: str, program: str) -> str:
    """What `program` prints, which finds at `sys.argv[1]` an empty disk mounted with `options`."""
    script = 'mount -t tmpfs -o "$2" disk "$1" && exec "$3" -c "$4" "$1"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", mount_point, options, sys.executable, program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
