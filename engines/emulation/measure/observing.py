"""Periodic samples of a running point: flows, CPUs and links every second, subflows at their interval.

Sampling must neither disturb the traffic nor be late. It runs at a better nice value than the traffic, and
skips intervals that it cannot keep.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engines.emulation.dataplanes.dataplane import MeasuredDataPlane
from engines.emulation.kernel.cpu import CpuSample, CpuSampler
from engines.emulation.measure.socket_table import SocketTable, SubflowReadings
from engines.emulation.traffic.driver import TrafficDriver
from model.instant import Instant, Windows

SAMPLE_S = 1.0
MIN_STEPS = 2
"""So that a window has two halves."""
NICE = -15
SUBFLOWS_A_SECOND = 8192
"""Limit on subflow rows per second; above it the interval grows."""


@dataclass(frozen=True)
class Sample:
    """Values at monotonic time `t_s`: payload bytes that each flow has delivered so far, CPU use since the
    last sample, bytes that each port has sent, read at the data plane's times `read_s`. `now_s` is the data
    plane's time of the sample. `drops` and `queued_pkts` are packets that each port has dropped so far and
    that it holds now, empty if unknown."""

    t_s: float
    received: Sequence[int | None]
    cpu: CpuSample
    read_s: npt.NDArray[np.float64]
    tx_bytes: npt.NDArray[np.uint64]
    now_s: float
    drops: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    queued_pkts: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))

    def seconds_since(self, earlier: Sample) -> float:
        """Return seconds of the data plane's time, in which flows can deliver data."""
        return self.now_s - earlier.now_s


class Observing:
    """Take samples in the calling thread while it waits; `samples` and `sockets` are in order of time."""

    def __init__(
        self, traffic: TrafficDriver, dataplane: MeasuredDataPlane, table: SocketTable, sockets_s: float
    ) -> None:
        self.samples: list[Sample] = []
        self.sockets: list[SubflowReadings] = []
        self.opened_at = 0  # the first sample of the window
        self._traffic = traffic
        self._dataplane = dataplane
        self._table = table
        self._sockets_s = sockets_s
        self._cpu = CpuSampler()

    def sample(self) -> None:
        """Sample flows, CPUs and links now."""
        self.samples.append(self._look())

    def _look(self) -> Sample:
        reading = self._dataplane.reading()
        received = self._traffic.received()
        cpu = self._cpu.sample()
        return Sample(
            time.monotonic(),
            received,
            cpu,
            reading.read_s,
            reading.tx_bytes,
            reading.now_s,
            reading.drops,
            reading.queued_pkts,
        )

    def instant(self, opens_s: float) -> Instant:
        """Return the last sample for followers of the run; the window opens at monotonic time `opens_s`."""
        seen = self.samples[-1]
        received = [-1 if count is None else count for count in seen.received]
        return Instant(
            round(seen.t_s - opens_s, 3),
            seen.tx_bytes.astype(np.int64),
            seen.drops.astype(np.int64),
            seen.queued_pkts.astype(np.int64),
            np.array(received, np.int64),
            _windows(self.sockets[-1]) if self.sockets else None,
        )

    def observe_window(self, seconds: float, follow: Callable[[], None]) -> None:
        """Take the first sample of the window, replacing a very recent one, and observe `seconds` of it."""
        last = self.samples[-1]
        if time.monotonic() - last.t_s < SAMPLE_S / 2:
            self.samples[-1] = dataclasses.replace(self._look(), cpu=last.cpu)
        else:
            self.sample()
        self.opened_at = len(self.samples) - 1
        self.observe_for(seconds, follow)

    def observe_for(self, seconds: float, follow: Callable[[], None]) -> None:
        """Sample about every `SAMPLE_S`, the last time exactly `seconds` from now. Call `follow` after
        each but the last, after which the caller reads what must not be late.

        Raises RunError if a flow's source or the data plane has ended.
        """
        start = time.monotonic()
        steps = max(MIN_STEPS, round(seconds / SAMPLE_S))
        for step in range(1, steps + 1):
            self._watch_sockets_until(start + seconds * step / steps)
            self.sample()
            self._dataplane.check()
            self._traffic.check()
            if step < steps:
                follow()

    def _watch_sockets_until(self, end: float) -> None:
        """Sleep until `end`, sampling the sockets whenever their interval has passed."""
        while self._sockets_s:
            last = self.sockets[-1].t_s if self.sockets else -np.inf
            due = max(time.monotonic(), last + self._sockets_s)
            if due >= end:
                break
            time.sleep(max(0.0, due - time.monotonic()))
            self._sample_sockets()
        time.sleep(max(0.0, end - time.monotonic()))

    def _sample_sockets(self) -> None:
        self.sockets.append(self._table.read())
        self._sockets_s = max(self._sockets_s, len(self.sockets[-1]) / SUBFLOWS_A_SECOND)


def _windows(read: SubflowReadings) -> Windows:
    srtt_ms = read.srtt_us / 1000
    return Windows(read.flow, read.subflow, read.cwnd_pkts.astype(np.float64), srtt_ms, read.bytes_acked)


def go_first() -> None:
    """Give this process priority over its future children, which start at nice 0 (sched(7))."""
    os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
