"""The default data plane: the C++ core on the real clock, between all hosts' veth ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from controllers.rules import Routes
from controllers.scheduler import Network
from engines.emulation.dataplane import Cpus, Octets, QueueSamples, Reading, Wiring, all_but, last_cpu
from engines.emulation.host_queues import HostQueues
from engines.link_events import ports_of
from engines.network_plan import downlink, plan_for, uplink
from engines.scheduling import FabricNetwork, FiveTupleNumbers
from engines.spec import QDISC, LinkEvent, RunSpec, sub_seed
from fabric._core import RealtimeFabric
from fabric.errors import RunError
from fabric.plan import FRAME_BITS, NetworkPlan
from fabric.readings import Snapshot
from topos.topology import Topology

_ASTRAY = {
    "ring_drops": "the fabric's receive ring",
    "send_refused": "the fabric's transmission (refused by the kernel)",
    "no_memory": "the fabric for want of descriptors",
    "oversized": "the fabric because they held several segments",
}
"""Counters of frames lost outside all queues, and where that is."""
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
    return Tuning(quantum_us, last_cpu(), 10)


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
        """Everything but the core's own CPU."""
        return all_but(self._tuning.cpu)

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
        )

    def provenance(self) -> Mapping[str, object]:
        tuning = self._tuning
        told = {"quantum_us": tuning.quantum_us, "cpu": tuning.cpu, "priority": tuning.priority}
        return {"fabric": {**told, "receive_cpus": self.cpus.receive_mask}}

    def restart_max_queues(self) -> None:
        self._running.restart_max_queues()

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
    tuning, sample_ms = default_tuning(spec.link.rate_mbps), float(spec.sampling.queues_ms)
    host_queues = HostQueues(topology, spec.link) if spec.link.host_queue == QDISC else None
    return FabricDataPlane(topology, plan_for(spec, topology), tuning, sample_ms, host_queues)
