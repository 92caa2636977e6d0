"""CPU time of processes outside the run, in user mode, as far as a run can measure it.

Inside the PID namespace /proc shows only the run's processes, but /proc/stat the whole machine. The kernel's
own work is system time, which cannot be attributed here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engines.emulation.kernel.cpu import STAT, parse_stat, total

_UTIME, _CUTIME = 11, 13
"""Fields of /proc/PID/stat after the program's name, from 0 (proc_pid_stat(5))."""


@dataclass(frozen=True)
class UserTime:
    """Ticks since boot: user mode of the machine, user mode of the run, and all CPU time."""

    machine: int
    own: int
    all: int


def read() -> UserTime:
    """Return the ticks so far on the CPUs that this process may use."""
    times = parse_stat(STAT.read_text())
    ours = total(times, [f"cpu{number}" for number in os.sched_getaffinity(0)])
    own = sum(_user_ticks(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return UserTime(ours.user, own, ours.total)


def others_pct(before: UserTime, after: UserTime) -> float:
    """Return the percentage of CPU time that others used in user mode; 0 if no tick has passed."""
    ticks = after.all - before.all
    others = (after.machine - before.machine) - (after.own - before.own)
    return max(0.0, 100.0 * others / ticks) if ticks > 0 else 0.0


def _user_ticks(process: Path) -> int:
    """Return the user ticks of a process and of its ended children; 0 if it has just ended."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[_UTIME]) + int(fields[_CUTIME])
