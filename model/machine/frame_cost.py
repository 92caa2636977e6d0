"""CPU cost of carrying a frame from one host to another, and the link rates that noise allows. Pure.

The cost is the CPU time of a short run beyond that of the idle machine, divided by the frames carried. It
includes both hosts' kernels, the traffic programs and the fabric's core.
"""

from __future__ import annotations

from collections.abc import Mapping

from model.machine.effects import BEARINGS
from model.machine.idle_noise import FLOOR_US, MachineNoise
from model.noise import queue_us
from model.reasons import SLOWEST
from model.spec import LinkSpec


def frame_us(metrics: Mapping[str, float], cpus: int, idle_pct: float, ports: float) -> float:
    """Return CPU microseconds per frame that crosses `ports` ports, from a run on a machine that is
    `idle_pct` busy when idle.

    Raises ValueError for a run that carried nothing.
    """
    frames_per_s = metrics["packet_hops_per_s"] / ports
    if frames_per_s <= 0:
        raise ValueError("measuring the cost of a frame: the run carried no frames")
    busy_us_per_s = max(0.0, metrics["cpu_busy_pct"] - idle_pct) / 100 * cpus * 1e6
    return busy_us_per_s / frames_per_s


def rate_by_noise(noise: MachineNoise) -> float:
    """Return the highest link rate (Mb/s) at which all goodput metrics tolerate the machine's noise."""
    at_1_mbps_us = BEARINGS[SLOWEST].late_share * queue_us(LinkSpec(1.0))
    return at_1_mbps_us / max(noise.late_p99_us, FLOOR_US)
