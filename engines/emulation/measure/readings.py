"""Everything that was read during a run, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engines.emulation.congestion.registration import Counts
from engines.emulation.dataplanes.dataplane import QueueSamples, Reading
from engines.emulation.measure.observing import Sample
from engines.emulation.measure.path_pings import PingReadings
from engines.emulation.measure.socket_table import Ints, SubflowReadings


@dataclass(frozen=True)
class Readings:
    """`samples[opened_at]` opens the measured window, the last sample closes it. `opened` and `closed` are
    the data plane's counters `core_seconds` apart; `before` and `after` the senders' sockets."""

    samples: Sequence[Sample]
    opened_at: int
    sockets: Sequence[SubflowReadings]
    opened: Reading
    closed: Reading
    core_seconds: float
    before: SubflowReadings
    after: SubflowReadings
    softnet_dropped: int
    kernel: Mapping[str, int]
    """All hosts' TCP and MPTCP counters over the window (netstat.py)."""
    congestion: Counts
    """What congestion controls of our own did in the window."""
    queues: QueueSamples | None
    pings: PingReadings | None
    up_s: Sequence[float]
    """Seconds from the start of traffic until each flow's last subflow was up."""
    started_s: Sequence[float]
    """Seconds from the start of traffic until each flow began to send; nan for one that did not."""
    completed_s: Sequence[float]
    opened_subflows: Sequence[int]
    """Of each flow, all that ever came up, by the kernel's events; 0 where nobody listened."""
    acked_bytes: Ints
    """Of each flow, what its subflows were acknowledged in the window."""
    stalled: Sequence[int]
    """Flows that stood still in the window although frames were due to them (stalls.py)."""
    waiting: Sequence[int]
    """Flows that delivered nothing in it although their subflows got data across."""
    others_pct: float = 0.0
    """Of all CPU time, what processes outside the run used in user mode."""
    scheduler: Mapping[str, float] = field(default_factory=dict)
    """What a central scheduler did, and how long it took (scheduled.py); empty without one."""

    @property
    def window(self) -> Sequence[Sample]:
        return self.samples[self.opened_at :]

    @property
    def zero_s(self) -> float:
        """The monotonic second all sample tables count from."""
        return self.samples[self.opened_at].t_s
