"""The probe on this machine, for a second and without root: it counts, whatever the machine does."""

from __future__ import annotations

import os
import time

from engines.emulation.noise import PERIOD_US, measure
from fabric import _core
from tests.support.waiting import until

BIN = 1 + 1 / 16
"""Ratio of the ends of a bin of the histogram: a percentile is the upper end of its bin."""


def test_every_cpu_is_watched_and_nothing_is_early() -> None:
    seconds = 0.5
    noise = measure(seconds)
    assert [cpu for cpu, _, _ in noise.by_cpu] == sorted(os.sched_getaffinity(0))
    assert noise.seconds == seconds
    assert 0 < noise.late_p50_us <= noise.late_p99_us
    for _, late_p99_us, longest_us in noise.by_cpu:
        assert 0 < late_p99_us <= longest_us * BIN, "no sleep ends on time to the nanosecond"
    assert noise.longest_us == max(longest_us for _, _, longest_us in noise.by_cpu)
    assert 0 <= noise.steal_pct <= 100


def test_wake_ups_are_counted_once_each() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    probe = _core.IdleProbe(cpus, period_us=PERIOD_US)
    began_s = time.monotonic()
    probe.start()
    until(lambda: all(probe.histogram(i).sum() for i in range(len(cpus))), 20.0, "each CPU woke up")
    probe.stop()
    elapsed_s = time.monotonic() - began_s
    for i in range(len(cpus)):
        assert 0 < probe.histogram(i).sum() <= elapsed_s * 1e6 / PERIOD_US
        assert probe.longest_ns(i) > 0, "no sleep ends on time to the nanosecond"
    assert not probe.is_real_time, "none was asked for"
