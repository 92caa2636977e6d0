"""What processes outside the run use of the CPUs, as far as a run can see it: in user mode.

Inside its PID namespace /proc shows the run's own processes alone, and /proc/stat the whole machine. The
kernel's own work, for whomever, is system time, which is not told apart here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engines.emulation.kernel.cpu import STAT, parse_stat, total

_UTIME, _CUTIME = 11, 13
"""Fields of /proc/PID/stat behind the program's name, from 0 (proc_pid_stat(5))."""


@dataclass(frozen=True)
class UserTime:
    """Ticks since boot: the machine's and the run's own in user mode, and of all CPU time."""

    machine: int
    own: int
    all: int


def read() -> UserTime:
    """Return the ticks so far on the CPUs that this process may run on."""
    times = parse_stat(STAT.read_text())
    ours = total(times, [f"cpu{number}" for number in os.sched_getaffinity(0)])
    own = sum(_user_ticks(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return UserTime(ours.user, own, ours.total)


def others_pct(before: UserTime, after: UserTime) -> float:
    """Percent of all CPU time that others used in user mode; 0 when no tick has passed."""
    ticks = after.all - before.all
    others = (after.machine - before.machine) - (after.own - before.own)
    return max(0.0, 100.0 * others / ticks) if ticks > 0 else 0.0


def _user_ticks(process: Path) -> int:
    """Of a process and of its children that have ended; 0 when it has just ended itself."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[_UTIME]) + int(fields[_CUTIME])
