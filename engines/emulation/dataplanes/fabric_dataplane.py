"""The default data plane: the C++ core on the real clock, between all hosts' veth ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from common.errors import RunError
from controllers.rules import Routes
from controllers.scheduler import Network
from engines.emulation.dataplanes.dataplane import (
    Cpus,
    Octets,
    QueueSamples,
    Reading,
    Wiring,
    balanced,
    last_cpu,
)
from engines.emulation.hosts.host_queues import HostQueues
from engines.scheduling import FabricNetwork, FiveTupleNumbers
from fabric._core import RealtimeFabric
from fabric.plan import FRAME_BITS, NetworkPlan
from fabric.readings import Snapshot
from model.link_events import ports_of
from model.network_plan import downlink, plan_for, uplink
from model.spec import ELASTIC, QDISC, LinkEvent, RunSpec, sub_seed
from topos.topology import Topology

_ASTRAY = {
    "ring_drops": "the fabric's receive ring",
    "send_refused": "the fabric's transmission (refused by the kernel)",
    "no_memory": "the fabric for want of descriptors",
    "oversized": "the fabric because they held several segments",
}
"""Counters of frames lost outside all queues, and where that is."""
LEAST_QUANTUM_US, MOST_QUANTUM_US = 20.0, 150.0


PRIORITY, PROBE_PRIORITY = 10, 20
"""SCHED_FIFO's, of the core and of the probes: a probe behind the core would find the core."""
PROBE_US = 1000.0
MIN_TOLERANCE_US, TOLERANCE_QUANTA = 300.0, 2.0
"""A timer of an idle virtual machine is late by up to 0.2 ms: that alone must not pause the clock."""
HOLD_US = 1000.0
MAX_PROBED = 16
"""CPUs, the core's first: each costs two threads that wake up every millisecond, and a look in every turn."""
MIN_IDLE_HOLD_US, MAX_IDLE_HOLD_US, IDLE_HOLD_FRAMES = 2000.0, 10000.0, 6.0
"""A busy CPU delays what hosts answer by so much at most; a full queue is a hundred frames."""


@dataclass(frozen=True)
class Tuning:
    """How the core's thread is run. `cpu` -1 lets it float; `priority` is SCHED_FIFO's, 0 for none. The clock
    pauses when the thread is late by more than `tolerance_us` (0: it never pauses)."""

    quantum_us: float
    cpu: int
    priority: int
    tolerance_us: float = 0.0
    idle_hold_us: float = 0.0
    """A CPU that has had no idle time for so long has work of hosts left over, and holds the clock; 0: it
    does not."""
    probed_cpus: tuple[int, ...] = ()


def default_tuning(rate_mbps: float, elastic: bool = True) -> Tuning:
    """An 8th of a full frame's time as quantum, the last CPU, a modest real-time priority.

    Without the priority the thread waits behind the hosts' processes: 24 ms at the 99th percentile
    instead of 0.4 (k=8, 5 Mb/s, 8 subflows). Receive processing is kept off its CPU (RPS).
    """
    frame_us = FRAME_BITS / rate_mbps
    quantum_us = min(MOST_QUANTUM_US, max(LEAST_QUANTUM_US, frame_us / 8))
    tolerance_us = max(MIN_TOLERANCE_US, TOLERANCE_QUANTA * quantum_us) if elastic else 0.0
    idle_hold_us = min(MAX_IDLE_HOLD_US, max(MIN_IDLE_HOLD_US, IDLE_HOLD_FRAMES * frame_us))
    cpus = tuple(sorted(os.sched_getaffinity(0), reverse=True)[:MAX_PROBED])
    return Tuning(quantum_us, last_cpu(), PRIORITY, tolerance_us, idle_hold_us if elastic else 0.0, cpus)


class FabricDataPlane:
    """MeasuredDataPlane over `RealtimeFabric`; readings and samples are valid from start to stop."""

    partial_checksums = True
    answers_arp = False
    foretells_paths = True

    def __init__(
        self,
        topology: Topology,
        plan: NetworkPlan,
        tuning: Tuning,
        sample_ms: float = 0.0,
        host_queues: HostQueues | None = None,
    ) -> None:
        self._topology = topology
        self._plan = plan
        self._tuning = tuning
        self._sample_ms = sample_ms
        self._host_queues = host_queues
        self._core: RealtimeFabric | None = None

    @property
    def queues_at_hosts(self) -> bool:
        return self._host_queues is not None

    @property
    def cpus(self) -> Cpus:
        """The core's own CPU reads what hosts send, and does as little else as balances the machine."""
        return balanced(self._tuning.cpu)

    def start(self, wiring: Wiring) -> None:
        macs = [nic.mac for nic in self._topology.nics]
        tuning = self._tuning
        if self._host_queues:
            self._host_queues.make(wiring)
        with _told("starting the fabric core"):
            self._core = RealtimeFabric(
                self._plan,
                wiring.ifindexes,
                macs,
                quantum_us=tuning.quantum_us,
                cpu=tuning.cpu,
                priority=tuning.priority,
                sample_ms=self._sample_ms,
                tolerance_us=tuning.tolerance_us,
                hold_us=HOLD_US,
                idle_hold_us=tuning.idle_hold_us,
                probed_cpus=tuning.probed_cpus,
                probe_priority=PROBE_PRIORITY,
                probe_us=PROBE_US,
            )
            self._core.start()
            self._core.snapshot()  # its thread answers only once it has its CPU and priority

    def stop(self) -> None:
        if self._host_queues:
            self._host_queues.close()
        core, self._core = self._core, None
        if core is not None:
            with _told("the fabric core stopped"):
                core.stop()

    def set_link(self, link: int, up: bool) -> None:
        for port in (uplink(link), downlink(link)):
            self._running.set_port_up(port, up)

    def dpctl(self, switch: str, *arguments: str) -> str:
        del arguments
        return f"no OpenFlow here: {switch} is the fabric core's, which forwards by hashed path\n"

    def check(self) -> None:
        """A core that has died says so at the next reading, a second later at most."""

    def set_share(self, event: LinkEvent) -> None:
        """Carries out a link event now."""
        for port in ports_of(event, self._topology):
            with _told("the fabric core stopped"):
                self._running.set_port_up(port, event.share > 0)
                if event.share:
                    rate_bps = round(event.share * int(self._plan.rate_bps[port]))
                    self._running.set_port_rate(port, rate_bps)

    def set_path(self, flow: FiveTupleNumbers, ports: Sequence[int]) -> None:
        """Frames of this flow take these ports from now on (engines/scheduling.py)."""
        with _told("the fabric core stopped"):
            self._running.set_path(flow, ports)

    def clear_path(self, flow: FiveTupleNumbers) -> None:
        """Routing chooses this flow's path again."""
        with _told("the fabric core stopped"):
            self._running.clear_path(flow)

    @contextmanager
    def network(self, spec: RunSpec, octets: Octets) -> Iterator[Network]:
        """As MeasuredDataPlane says; flows are those of `octets`."""
        routes = Routes(self._topology, spec.routing, sub_seed(spec.seed, "routing"))
        yield FabricNetwork(self._topology, routes, self, octets, self.snapshot)

    def snapshot(self) -> Snapshot:
        """Counters since the start. Raises RunError when the core has died, with its reason."""
        with _told("the fabric core stopped"):
            return self._running.snapshot()

    def reading(self) -> Reading:
        """As `snapshot`."""
        seen = self.snapshot()
        astray = {place: seen[name] for name, place in _ASTRAY.items()}  # type: ignore[literal-required]
        scalars = {name: value for name, value in seen.items() if isinstance(value, int | float)}
        at_hosts = self._host_queues.drops() if self._host_queues else np.uint64(0)
        return Reading(
            now_s=seen["now_s"],
            read_s=np.full(len(seen["tx_packets"]), seen["now_s"]),
            tx_packets=seen["tx_packets"],
            tx_bytes=seen["tx_bytes"],
            drops=seen["drops"] + at_hosts,
            losses=seen["losses"],
            marks=seen["marks"],
            max_queue_pkts=seen["max_queue_pkts"],
            hops=seen["hops"],
            astray=astray,
            cpu_s={"fabric": seen["cpu_s"]},
            scalars=scalars,
            lateness=seen["lateness"],
            paused_s=seen["paused_s"],
            longest_pause_s=seen["longest_pause_s"],
            unheld_s=seen["unheld_s"],
            wakeups={cpu: counts for cpu, _, counts in seen["wakeups"]},
        )

    def provenance(self) -> Mapping[str, object]:
        tuning = self._tuning
        told = {
            "quantum_us": tuning.quantum_us,
            "cpu": tuning.cpu,
            "priority": tuning.priority,
            "tolerance_us": tuning.tolerance_us,
            "idle_hold_us": tuning.idle_hold_us,
            "probed_cpus": list(tuning.probed_cpus),
        }
        cpus = self.cpus
        steered = {
            "receive_cpus": cpus.receive_mask,
            "core_cpus": cpus.core_mask,
            "core_share": cpus.core_share,
        }
        return {"fabric": {**told, **steered}}

    def restart_maxima(self) -> None:
        self._running.restart_maxima()

    def sample_queues_every(self, interval_ms: float) -> None:
        """From now on; 0 for no more."""
        self._running.sample_every(interval_ms)

    def queue_samples(self) -> QueueSamples:
        """Those since the last call; times in seconds since the start."""
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


def make(spec: RunSpec, topology: Topology) -> FabricDataPlane:
    """The core a RunSpec asks for."""
    tuning = default_tuning(spec.link.rate_mbps, spec.clock == ELASTIC)
    sample_ms = float(spec.sampling.queues_ms)
    host_queues = HostQueues(topology, spec.link) if spec.link.host_queue == QDISC else None
    return FabricDataPlane(topology, plan_for(spec, topology), tuning, sample_ms, host_queues)
