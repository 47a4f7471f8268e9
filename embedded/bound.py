"""Ties the process it becomes to its parent's life.

Run as a program of its own: `bound.py PARENT SIGNAL USER COMMAND...` changes to USER (unless empty), asks the
kernel to send SIGNAL when the parent ends, and then becomes COMMAND, keeping its pid. So a killed parent leaves
no servers behind. Only Linux has such a request; elsewhere COMMAND outlives a parent that is killed.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import sys

PR_SET_PDEATHSIG = 1


def main(parent: str, death_signal: str, user: str, *command: str) -> None:
    if user:
        entry = pwd.getpwnam(user)
        os.initgroups(user, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    # After the change of user, because that change clears the request.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("the parent ended before its child began")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
