"""Ties the process it becomes to its parent's life.

Run as a program of its own: `bound.py PARENT SIGNAL USER COMMAND...` changes from root to USER (unless empty), asks
the kernel to send SIGNAL when the parent ends, and then becomes COMMAND, keeping its pid. So a killed parent leaves
no servers behind. Only Linux has such a request; elsewhere COMMAND outlives a parent that is killed.

As USER the command still passes file permissions as root does: its data may lie below folders closed to others,
such as root's home, and opening those would be worse.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522


def main(parent: str, death_signal: str, user: str, *command: str) -> None:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if user:
        become(user, libc)
    # After the change of user, because that change clears the request.
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("the parent ended before its child began")
    os.execv(command[0], command)


def become(user: str, libc: ctypes.CDLL | None) -> None:
    """Change to the user, keeping of root's powers only that over file permissions (where root has it)."""
    entry = pwd.getpwnam(user)
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    if libc is not None:
        libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setuid(entry.pw_uid)
    if libc is not None:
        kept = 1 << CAP_DAC_OVERRIDE
        header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
        # Effective, permitted, inheritable: the low 32 capabilities, then the high ones.
        libc.capset(header, struct.pack("=6I", kept, kept, kept, 0, 0, 0))
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
