"""All raw readings of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engines.emulation.dataplanes.dataplane import QueueSamples
from engines.emulation.measure.observing import Sample
from engines.emulation.measure.path_pings import PingReadings
from engines.emulation.measure.socket_table import Ints, SubflowReadings
from engines.emulation.measure.totals import Totals


@dataclass(frozen=True)
class Readings:
    """Raw readings of a run. `samples[opened_at]` opens the measured window; the last sample closes it."""

    samples: Sequence[Sample]
    opened_at: int
    sockets: Sequence[SubflowReadings]
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
    """Metrics of a central scheduler (scheduled.py); empty without one."""
    granted: Sequence[int] | None = None
    """Subflows that a controller had granted each flow at the start of the window; None without one."""

    @property
    def window(self) -> Sequence[Sample]:
        return self.samples[self.opened_at :]

    @property
    def zero_s(self) -> float:
        """The monotonic time from which sample tables count."""
        return self.samples[self.opened_at].t_s
