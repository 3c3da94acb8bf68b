"""How a child of the launcher makes sure that it does not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "TRIZONE_PARENT"
"""Names the launcher's process id in the environment of its children."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent() -> None:
    """Have the kernel end this process when the launcher ends, however it ends. Does nothing without a launcher.

    The child asks for it itself, first of all, rather than between fork and exec: so the launcher can start children
    with vfork, whatever threads it has. A launcher that was gone before is seen by the changed parent.
    """
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is None:
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit(1)
