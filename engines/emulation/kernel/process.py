"""The state of a process: /proc/PID/stat (proc_pid_stat(5))."""

from __future__ import annotations

import os
from pathlib import Path

STATE, USER_TICKS, SYSTEM_TICKS = 0, 11, 12
"""Fields after the name of the program, from 0."""


def fields(pid: int) -> list[str]:
    """Return the fields after the name of the program. Raises OSError if there is no such process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process's threads, user and system, in s. Raises OSError."""
    found = fields(pid)
    return (int(found[USER_TICKS]) + int(found[SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")


def is_zombie(pid: int) -> bool:
    """Return whether the first thread has ended. The process can be waited for only when all have, seconds
    later on a busy machine."""
    try:
        return fields(pid)[STATE] == "Z"
    except OSError:
        return False
