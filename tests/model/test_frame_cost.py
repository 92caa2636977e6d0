"""From a short run's CPU time to the rates a machine carries: physics, and no number of one machine."""

from __future__ import annotations

import dataclasses

import pytest

from model.machine import BEARINGS, MachineNoise, frame_us, rate_by_noise
from model.reasons import SLOWEST

QUIET = MachineNoise(1.0, 20.0, 70.0, 300.0, 0.0, ((0, 70.0, 300.0), (1, 60.0, 200.0)))


def test_all_busy_time_but_the_idle_machines_is_the_frames() -> None:
    metrics = {"cpu_busy_pct": 45.0, "packet_hops_per_s": 100_000.0}
    assert frame_us(metrics, cpus=2, idle_pct=5.0, ports=2.0) == pytest.approx(0.4 * 2 * 1e6 / 50_000)
    assert frame_us(metrics, cpus=2, idle_pct=50.0, ports=2.0) == 0
    with pytest.raises(ValueError, match="the run carried no frames"):
        frame_us({**metrics, "packet_hops_per_s": 0.0}, 2, 5.0, 2.0)


def test_noise_allows_what_keeps_it_small_beside_a_full_queue() -> None:
    noisy = dataclasses.replace(QUIET, late_p99_us=4000.0)
    full_queue_us = 100 * 12_112 / rate_by_noise(noisy)
    assert 4000 / full_queue_us == pytest.approx(BEARINGS[SLOWEST].late_share)
    louder = dataclasses.replace(QUIET, late_p99_us=8000.0)
    assert rate_by_noise(louder) == pytest.approx(rate_by_noise(noisy) / 2)
    assert rate_by_noise(QUIET) > 100, "more than calibration tries"
