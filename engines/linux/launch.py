"""The first moments of a guest's process, between fork and exec: what it may use, and when it must end.

Run as a program of its own, so that no thread of the caller is in the way.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from common import programs
from engines.linux import landlock

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from engines.linux.launch import become; become(sys.argv[2])"
)
_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000


def launcher(argv: Sequence[str], cpu: int | None, writable: Sequence[Path], memory: Path) -> list[str]:
    """Return the command that becomes `argv`, pinned to `cpu` (None: to none).

    It can write nothing but below `writable`, and has its memory in a file below `memory`.
    """
    request = {
        "argv": list(argv),
        "cpu": cpu,
        "writable": [str(path) for path in writable],
        "memory": str(memory),
        "parent": os.getpid(),
    }
    return [*programs.python(), _PROGRAM, str(ROOT), json.dumps(request)]


def become(request: str) -> None:
    """Set this process up, and become the guest. Never returns."""
    asked = json.loads(request)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != asked["parent"]:
        sys.exit(137)
    # The start of the kernel's heap decides how much memory the guest has, to the page.
    libc.personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE))
    if asked["cpu"] is not None:
        os.sched_setaffinity(0, {asked["cpu"]})
    landlock.write_only_below([*asked["writable"], asked["memory"]])
    argv = asked["argv"]
    os.execve(
        argv[0], argv, {"PATH": programs.SYSTEM_PATH, "TMPDIR": asked["memory"], "HOME": "/nonexistent"}
    )
