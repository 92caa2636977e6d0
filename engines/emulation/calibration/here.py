"""This machine, as advice needs it: what it was seen to carry, and its CPUs."""

from __future__ import annotations

import os

from engines.emulation.calibration import calibrate
from model.machine.capacity import Capacity


def capacity() -> Capacity:
    """What was measured on this machine and kernel; nothing is started."""
    return Capacity(calibrate.measured(), len(os.sched_getaffinity(0)))
