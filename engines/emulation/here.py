"""This machine, as advice needs it: what it was seen to carry, its CPUs, its free memory."""

from __future__ import annotations

import os
from pathlib import Path

from engines.capacity import Capacity
from engines.emulation import calibrate


def capacity() -> Capacity:
    """What was measured on this machine and kernel; nothing is started."""
    return Capacity(calibrate.measured(), len(os.sched_getaffinity(0)))


def free_memory_mb() -> float:
    """MemAvailable of /proc/meminfo."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) / 1024
