"""The capacity of this machine, from calibrations."""

from __future__ import annotations

import os

from engines.emulation.calibration import calibrate
from model.machine.capacity import Capacity


def capacity() -> Capacity:
    """Return the measured capacity of this machine and kernel; starts nothing."""
    return Capacity(calibrate.measured(), len(os.sched_getaffinity(0)))
