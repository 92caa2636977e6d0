"""What is read during a run: samples every second, subflows at their interval, counters around the window.

Sampling must neither disturb the traffic nor be late. It runs at a better nice value than the traffic, and
skips intervals that it cannot keep.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engines.emulation.app import AppRun
from engines.emulation.congestion.registration import CongestionCounts
from engines.emulation.dataplanes.dataplane import MeasuredDataPlane, PlaneReading, QueueSamples
from engines.emulation.kernel import proc
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.kernel.proc import CpuSample, CpuSampler
from engines.emulation.measure.path_pings import PingReadings
from engines.emulation.measure.socket_table import Ints, SocketReadings, SocketTable
from engines.emulation.traffic.driver import TrafficDriver
from model.result import Instant, Windows

SAMPLE_S = 1.0
MIN_STEPS = 2
"""So that a window has two halves."""
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


@dataclass(frozen=True)
class Totals:
    """Counters of a window. `opened` and `closed` are the data plane's, read at the monotonic times
    `opened_s` and `closed_s`; `before` and `after` are the senders' sockets. The others are increments."""

    opened: PlaneReading
    opened_s: float
    closed: PlaneReading
    closed_s: float
    before: SocketReadings
    after: SocketReadings
    softnet_dropped: int
    kernel: Mapping[str, int]
    """TCP and MPTCP counters of all hosts (proc.py)."""
    congestion: CongestionCounts
    """Counters of refabric's congestion controls."""
    others_pct: float
    """Share of all CPU time that processes outside the run used in user mode."""

    @property
    def core_seconds(self) -> float:
        """Seconds between the two readings of the data plane."""
        return self.closed_s - self.opened_s


@dataclass(frozen=True)
class Readings:
    """Raw readings of a run. `samples[opened_at]` opens the measured window; the last sample closes it."""

    samples: Sequence[Sample]
    opened_at: int
    sockets: Sequence[SocketReadings]
    totals: Totals
    queues: QueueSamples | None
    pings: PingReadings | None
    up_s: Sequence[float]
    """Seconds from the start of traffic until each flow's last subflow was established."""
    started_s: Sequence[float]
    """Seconds from the start of traffic until each flow began to send; nan if it did not."""
    completed_s: Sequence[float]
    retransmitted: Sequence[int | None]
    """Segments that each completed flow retransmitted in all; None if it is not completed, or unknown."""
    opened_subflows: Sequence[int]
    """Number of subflows of each flow that were ever established, by kernel events; 0 without a watcher."""
    acked_bytes: Ints
    """Bytes of each flow that its subflows had acknowledged in the window."""
    stalled: Sequence[int]
    """Flows that delivered nothing in the window although frames were due, and whose subflows stood still."""
    waiting: Sequence[int]
    """Flows that delivered nothing in the window although their subflows carried data."""
    scheduler: Mapping[str, float] = field(default_factory=dict)
    """Metrics of a central scheduler (dataplanes/control.py); empty without one."""
    granted: Sequence[int] | None = None
    """Subflows that a controller had granted each flow at the start of the window; None without one."""

    @property
    def window(self) -> Sequence[Sample]:
        return self.samples[self.opened_at :]

    @property
    def zero_s(self) -> float:
        """The monotonic time from which sample tables count."""
        return self.samples[self.opened_at].t_s


class Sampler:
    """Take samples in the calling thread while it waits; `samples` and `sockets` are in order of time."""

    def __init__(
        self,
        traffic: TrafficDriver,
        dataplane: MeasuredDataPlane,
        hosts: Sequence[HostRef],
        table: SocketTable,
        congestion: Callable[[], CongestionCounts],
        sockets_s: float,
        programs: AppRun | None = None,
    ) -> None:
        """`congestion` returns the counters of congestion controls; every `sockets_s` sockets are read."""
        self.samples: list[Sample] = []
        self.sockets: list[SocketReadings] = []
        self.opened_at = 0  # the first sample of the window
        self._traffic = traffic
        self._dataplane = dataplane
        self._hosts = hosts
        self._table = table
        self._congestion = congestion
        self._sockets_s = sockets_s
        self._programs = programs
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
        seen, windows = self.samples[-1], None
        received = [-1 if count is None else count for count in seen.received]
        if self.sockets:
            read = self.sockets[-1]
            cwnd_pkts, srtt_ms = read.cwnd_pkts.astype(np.float64), read.srtt_us / 1000
            windows = Windows(read.flow, read.subflow, cwnd_pkts, srtt_ms, read.bytes_acked)
        return Instant(
            round(seen.t_s - opens_s, 3),
            seen.tx_bytes.astype(np.int64),
            seen.drops.astype(np.int64),
            seen.queued_pkts.astype(np.int64),
            np.array(received, np.int64),
            windows,
        )

    def measure(self, seconds: float, follow: Callable[[], None]) -> Totals:
        """Observe a window of `seconds` between two readings of all counters.

        The data plane is read last before and first after the window: its counters cover exactly that. The
        first sample of the window replaces a very recent one.
        """
        before, kernel = self._table.read(), proc.read_netstat(self._hosts)
        backlog, congestion = proc.softnet_dropped(), self._congestion()
        users = proc.read_user_ticks()
        self._dataplane.restart_maxima()
        opened, opened_s = self._dataplane.reading(), time.monotonic()
        last = self.samples[-1]
        if time.monotonic() - last.t_s < SAMPLE_S / 2:
            self.samples[-1] = dataclasses.replace(self._look(), cpu=last.cpu)
        else:
            self.sample()
        self.opened_at = len(self.samples) - 1
        if self._programs:
            self._programs.opened(self.samples[-1].t_s)
        self.observe_for(seconds, follow)
        closed, closed_s = self._dataplane.reading(), time.monotonic()
        others_pct = proc.others_pct(users, proc.read_user_ticks())
        backlog = proc.softnet_dropped() - backlog
        congestion = self._congestion() - congestion
        after, kernel_after = self._table.read(), proc.read_netstat(self._hosts)
        return Totals(
            opened=opened,
            opened_s=opened_s,
            closed=closed,
            closed_s=closed_s,
            before=before,
            after=after,
            softnet_dropped=backlog,
            kernel=proc.netstat_difference(kernel, kernel_after),
            congestion=congestion,
            others_pct=others_pct,
        )

    def observe_for(self, seconds: float, follow: Callable[[], None]) -> None:
        """Sample about every `SAMPLE_S`, the last time exactly `seconds` from now, or when the programs that
        end the run have ended. Call `follow` after each but the last, after which the caller reads what must
        not be late.

        Raises RunError if a flow's source or the data plane has ended, or a program has failed.
        """
        start = time.monotonic()
        steps = max(MIN_STEPS, round(seconds / SAMPLE_S))
        for step in range(1, steps + 1):
            self._watch_sockets_until(start + seconds * step / steps)
            self.sample()
            self._dataplane.check()
            self._traffic.check()
            if self._programs and self._programs.done() and step >= MIN_STEPS:
                return
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
            self.sockets.append(self._table.read())
            self._sockets_s = max(self._sockets_s, len(self.sockets[-1]) / SUBFLOWS_A_SECOND)
        time.sleep(max(0.0, end - time.monotonic()))
