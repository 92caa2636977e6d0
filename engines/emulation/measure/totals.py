"""All cumulative counters at both ends of the measured window."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engines.emulation.congestion.registration import Counts
from engines.emulation.dataplanes.dataplane import MeasuredDataPlane, Reading
from engines.emulation.kernel import netstat
from engines.emulation.kernel.cpu import read_softnet
from engines.emulation.kernel.netns import HostRef
from engines.emulation.measure.socket_table import SocketTable, SubflowReadings
from engines.emulation.verdict import company


class Counting(Protocol):
    """Congestion controls that count what they do."""

    def counts(self) -> Counts: ...


@dataclass(frozen=True)
class Totals:
    """Counters of a window. `opened` and `closed` are the data plane's, read at the monotonic times
    `opened_s` and `closed_s`; `before` and `after` are the senders' sockets. The others are increments."""

    opened: Reading
    opened_s: float
    closed: Reading
    closed_s: float
    before: SubflowReadings
    after: SubflowReadings
    softnet_dropped: int
    kernel: Mapping[str, int]
    """TCP and MPTCP counters of all hosts (netstat.py)."""
    congestion: Counts
    """Counters of refabric's congestion controls."""
    others_pct: float
    """Share of all CPU time that processes outside the run used in user mode."""

    @property
    def core_seconds(self) -> float:
        """Seconds between the two readings of the data plane."""
        return self.closed_s - self.opened_s


@dataclass(frozen=True)
class Counted:
    """What has counters: the data plane, the hosts, their sockets and their congestion controls."""

    dataplane: MeasuredDataPlane
    hosts: Sequence[HostRef]
    table: SocketTable
    congestion: Counting

    def while_running(self, window: Callable[[], None]) -> Totals:
        """Read all counters, call `window`, which returns at the end of the window, and read them again.

        The data plane is read last before and first after the window: its counters cover exactly that.
        """
        before, kernel = self.table.read(), netstat.read(self.hosts)
        softnet, congestion = read_softnet(), self.congestion.counts()
        users = company.read()
        self.dataplane.restart_maxima()
        opened, opened_s = self.dataplane.reading(), time.monotonic()
        window()
        closed, closed_s = self.dataplane.reading(), time.monotonic()
        others_pct = company.others_pct(users, company.read())
        dropped = (read_softnet() - softnet).dropped
        congestion = self.congestion.counts() - congestion
        after, counted = self.table.read(), netstat.read(self.hosts)
        grown = netstat.difference(kernel, counted)
        return Totals(
            opened, opened_s, closed, closed_s, before, after, dropped, grown, congestion, others_pct
        )
