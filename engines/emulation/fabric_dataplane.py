"""The default data plane: the C++ core on the real clock, between all hosts' veth ends."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engines.link_events import ports_of
from engines.network_plan import downlink, plan_for, uplink
from engines.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec
from fabric._core import LATENESS_EDGES_NS, RealtimeFabric
from fabric.errors import RunError
from fabric.plan import FRAME_BITS, NetworkPlan
from fabric.readings import Snapshot
from topos.topology import Topology

LEAST_QUANTUM_US, MOST_QUANTUM_US = 20.0, 150.0


@dataclass(frozen=True)
class Tuning:
    """How the core's thread is run. `cpu` -1 lets it float; `priority` is SCHED_FIFO's, 0 for none."""

    quantum_us: float
    cpu: int
    priority: int


def default_tuning(rate_mbps: float) -> Tuning:
    """An 8th of a full frame's time as quantum, the last CPU, a modest real-time priority.

    Without the priority the thread waits behind the hosts' processes: 24 ms at the 99th percentile
    instead of 0.4 (k=8, 5 Mb/s, 8 subflows). Receive processing is kept off its CPU (RPS).
    """
    frame_us = FRAME_BITS / rate_mbps
    quantum_us = min(MOST_QUANTUM_US, max(LEAST_QUANTUM_US, frame_us / 8))
    cpus = sorted(os.sched_getaffinity(0))
    return Tuning(quantum_us, cpus[-1] if len(cpus) > 1 else -1, 10)


class FabricDataPlane:
    """DataPlane over `RealtimeFabric`; `snapshot` and `queue_samples` are valid from start to stop."""

    def __init__(self, topology: Topology, plan: NetworkPlan, tuning: Tuning, sample_ms: float = 0.0) -> None:
        self._topology = topology
        self._plan = plan
        self._tuning = tuning
        self._sample_ms = sample_ms
        self._core: RealtimeFabric | None = None

    def start(self, ifindexes: Sequence[int]) -> None:
        macs = [nic.mac for nic in self._topology.nics]
        tuning = self._tuning
        with _told("starting the fabric core"):
            self._core = RealtimeFabric(
                self._plan,
                ifindexes,
                macs,
                quantum_us=tuning.quantum_us,
                cpu=tuning.cpu,
                priority=tuning.priority,
                sample_ms=self._sample_ms,
            )
            self._core.start()
            self._core.snapshot()  # its thread answers only once it has its CPU and priority

    def stop(self) -> None:
        core, self._core = self._core, None
        if core is not None:
            with _told("the fabric core stopped"):
                core.stop()

    def set_link(self, link: int, up: bool) -> None:
        for port in (uplink(link), downlink(link)):
            self._running.set_port_up(port, up)

    def set_share(self, event: LinkEvent) -> None:
        """Carries out a link event now."""
        for port in ports_of(event, self._topology):
            with _told("the fabric core stopped"):
                self._running.set_port_up(port, event.share > 0)
                if event.share:
                    rate_bps = round(event.share * int(self._plan.rate_bps[port]))
                    self._running.set_port_rate(port, rate_bps)

    def snapshot(self) -> Snapshot:
        """Counters since the start. Raises RunError when the core has died, with its reason."""
        with _told("the fabric core stopped"):
            return self._running.snapshot()

    def restart_max_queues(self) -> None:
        self._running.restart_max_queues()

    def sample_queues_every(self, interval_ms: float) -> None:
        """From now on; 0 for no more."""
        self._running.sample_every(interval_ms)

    def queue_samples(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]:
        """Times (s since the start) and, a row a time, each port's queue length in packets."""
        times, lengths = self._running.take_samples()
        return times, lengths.reshape(len(times), len(self._plan.rate_bps))

    @property
    def _running(self) -> RealtimeFabric:
        if self._core is None:
            raise RunError("the fabric core is not running")
        return self._core


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever the core throws as RunError: its thread's failure comes out of any call."""
    try:
        yield
    except (RuntimeError, ValueError, MemoryError) as error:
        raise RunError(f"{what}: {error}") from error


def lateness_us(before: Snapshot, after: Snapshot, percentile: float) -> float:
    """This percentile of the frames' lateness between two snapshots, in microseconds; 0 when none came.

    Resolution is 1/16; the upper edge of the histogram's bin is given, so it is never flattering.
    """
    counts = after["lateness"] - before["lateness"]
    total = int(counts.sum())
    if total == 0:
        return 0.0
    bin_ = int(np.searchsorted(np.cumsum(counts), np.ceil(total * percentile / 100)))
    return float(LATENESS_EDGES_NS[min(bin_ + 1, len(LATENESS_EDGES_NS) - 1)]) / 1000


def other_cpu(tuning: Tuning) -> int:
    """A CPU that is not the core's, for threads that talk to hosts; -1 (any) when there is none."""
    others = sorted(os.sched_getaffinity(0) - {tuning.cpu})
    return others[0] if tuning.cpu >= 0 and others else -1


def receive_cpu_mask(tuning: Tuning) -> str:
    """Receive-packet-steering mask of all CPUs but the core's; empty when there is no other."""
    others = os.sched_getaffinity(0) - {tuning.cpu}
    return cpu_mask(others) if tuning.cpu >= 0 and others else ""


def cpu_mask(cpus: Collection[int]) -> str:
    """Hexadecimal as the kernel parses it: at most 32 CPUs between commas (lib/bitmap-str.c)."""
    words = [0] * (max(cpus) // 32 + 1)
    for cpu in cpus:
        words[cpu // 32] |= 1 << cpu % 32
    first, *rest = reversed(words)
    return ",".join([f"{first:x}", *(f"{word:08x}" for word in rest)])


def shell_dataplane(topology: Topology, rate_mbps: float, queue_pkts: int) -> FabricDataPlane:
    """The core for an interactive shell: hashed paths, every link alike."""
    link = LinkSpec(rate_mbps, queue_pkts=queue_pkts, nic_queue_pkts=queue_pkts)
    spec = RunSpec(link, TopologySpec(topology.kind, topology.params))
    return FabricDataPlane(topology, plan_for(spec, topology), default_tuning(rate_mbps))
