"""The default data plane: the C++ core on the real clock, between the veth ends of all hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from common.errors import RunError
from controllers.rules import Routes
from controllers.scheduler import Network
from engines.emulation.dataplanes.dataplane import (
    Change,
    Cpus,
    Octets,
    PlaneReading,
    QueueSamples,
    balanced,
    last_cpu,
)
from engines.emulation.hosts.hosts import HostQueues
from engines.emulation.sandbox.inside import Caller
from engines.scheduling import FabricNetwork, FiveTupleNumbers
from fabric._core import RealtimeFabric
from fabric.plan import FRAME_BITS, PS_PER_US, NetworkPlan
from fabric.readings import Snapshot
from model.links import downlink, ports_of, uplink
from model.network_plan import plan_for, reroutes
from model.spec import ELASTIC, QDISC, VIRTUAL, LinkEvent, RunSpec, sub_seed
from topos.topology import Topology

_ASTRAY = {
    "ring_drops": "the fabric's receive ring",
    "send_refused": "the fabric's transmission (refused by the kernel)",
    "no_memory": "the fabric (no free descriptor)",
    "oversized": "the fabric because they held several segments",
}
"""Counters of frames lost outside all queues, and the place of the loss."""
MIN_QUANTUM_US, MAX_QUANTUM_US, MAX_VIRTUAL_US = 20.0, 750.0, 150.0
"""Limits of the quantum in real and in virtual time. In real time each quantum costs a wake-up of the core
and one of a CPU for the hosts. In virtual time stored results depend on it."""

PRIORITY, PROBE_PRIORITY = 10, 20
"""Priorities (SCHED_FIFO) of the core and of the probes. A probe below the core would measure the core
itself."""
PROBE_US = 1000.0
MIN_TOLERANCE_US, TOLERANCE_QUANTA = 300.0, 2.0
"""A timer of an idle virtual machine is late by up to 0.2 ms. That alone must not pause the clock."""
HOLD_US = 1000.0
MAX_PROBED = 16
"""Number of probed CPUs, the core's first. Each costs two threads that wake up every millisecond, and a check
per loop of the core."""
MIN_IDLE_HOLD_US, MAX_IDLE_HOLD_US, IDLE_HOLD_FRAMES = 2000.0, 10000.0, 6.0
"""The longest delay that a busy CPU may add to the hosts' replies; a full queue is a hundred frames."""


@dataclass(frozen=True)
class Tuning:
    """How the core's thread runs.

    `cpu` -1 does not pin it; `priority` is for SCHED_FIFO, 0 for none. The clock pauses if the thread is late
    by more than `tolerance_us` (0: never).
    """

    quantum_us: float
    cpu: int
    priority: int
    tolerance_us: float = 0.0
    idle_hold_us: float = 0.0
    """If a CPU had no idle time for this long, hosts' work is left over, and the clock waits for it; 0: it
    does not."""
    probed_cpus: tuple[int, ...] = ()
    virtual_time: bool = False


def default_tuning(rate_mbps: float, clock: str = ELASTIC) -> Tuning:
    """Return the defaults: the quantum is an eighth of a frame's time, on the last CPU, at a low real-time
    priority.

    Without the priority the thread waits behind the hosts' processes: 24 ms at the 99th percentile instead of
    0.4 (k=8, 5 Mb/s, 8 subflows). Receive processing runs on other CPUs (RPS). In
    virtual time the clock never pauses, and no CPU is probed.
    """
    frame_us = FRAME_BITS / rate_mbps
    most_us = MAX_VIRTUAL_US if clock == VIRTUAL else MAX_QUANTUM_US
    quantum_us = min(most_us, max(MIN_QUANTUM_US, frame_us / 8))
    if clock == VIRTUAL:
        return Tuning(quantum_us, last_cpu(), PRIORITY, virtual_time=True)
    elastic = clock == ELASTIC
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
        """The CPUs for hosts. The core's CPU receives what hosts send, and does as little other work as
        balances the machine."""
        return balanced(self._tuning.cpu)

    def start(self, ifindexes: Sequence[int], pids: Mapping[int, int]) -> None:
        macs = [nic.mac for nic in self._topology.nics]
        tuning = self._tuning
        if self._host_queues:
            self._host_queues.make(pids)
        with _core_errors("starting the fabric core"):
            self._core = RealtimeFabric(
                self._plan,
                ifindexes,
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
                virtual_time=tuning.virtual_time,
            )
            self._core.start()
            self._core.snapshot()  # its thread answers only once it has its CPU and priority

    def stop(self) -> None:
        if self._host_queues:
            self._host_queues.close()
        core, self._core = self._core, None
        if core is not None:
            with _core_errors("the fabric core stopped"):
                core.stop()

    def set_link(self, link: int, up: bool) -> None:
        for port in (uplink(link), downlink(link)):
            self._running.set_port_up(port, up)

    def dpctl(self, switch: str, *arguments: str) -> str:
        del arguments
        return f"no OpenFlow here: {switch} is the fabric core's, which forwards by hashed path\n"

    def check(self) -> None:
        """Do nothing: the next reading, at most a second later, reports a core that has died."""

    def set_share(self, event: LinkEvent) -> None:
        """Carry out a link event now."""
        for port in ports_of(event, self._topology):
            with _core_errors("the fabric core stopped"):
                self._running.set_port_up(port, event.share > 0)
                if event.share:
                    rate_bps = round(event.share * int(self._plan.rate_bps[port]))
                    self._running.set_port_rate(port, rate_bps)

    def changes(self, spec: RunSpec) -> list[Change]:
        """See MeasuredDataPlane. The paths of all changes are found here, before any is due."""
        return [
            *((event.t_s, partial(self.set_share, event)) for event in spec.events),
            *((t_s, partial(self._reroute, plan)) for t_s, plan in reroutes(spec, self._topology)),
        ]

    def _reroute(self, plan: NetworkPlan) -> None:
        with _core_errors("the fabric core stopped"):
            self._running.reroute(plan)

    def set_path(self, flow: FiveTupleNumbers, ports: Sequence[int]) -> None:
        """Send frames of this flow through these ports from now on (engines/scheduling.py)."""
        with _core_errors("the fabric core stopped"):
            self._running.set_path(flow, ports)

    def clear_path(self, flow: FiveTupleNumbers) -> None:
        """Let routing choose this flow's path again."""
        with _core_errors("the fabric core stopped"):
            self._running.clear_path(flow)

    @contextmanager
    def network(self, spec: RunSpec, octets: Octets) -> Iterator[Network]:
        """See MeasuredDataPlane; flows are those of `octets`."""
        routes = Routes(self._topology, spec.routing, sub_seed(spec.seed, "routing"))
        yield FabricNetwork(self._topology, routes, self, octets, self.snapshot)

    def snapshot(self) -> Snapshot:
        """Return the counters since the start. Raises RunError with the reason if the core has died."""
        with _core_errors("the fabric core stopped"):
            return self._running.snapshot()

    def reading(self) -> PlaneReading:
        """See `snapshot`."""
        seen = self.snapshot()
        astray = {place: seen[name] for name, place in _ASTRAY.items()}  # type: ignore[literal-required]
        scalars = {name: value for name, value in seen.items() if isinstance(value, int | float)}
        scalars["pushed_out"] = int(seen["pushed_out"].sum())
        at_hosts = self._host_queues.drops() if self._host_queues else np.uint64(0)
        return PlaneReading(
            now_s=seen["now_s"],
            read_s=np.full(len(seen["tx_packets"]), seen["now_s"]),
            tx_packets=seen["tx_packets"],
            tx_bytes=seen["tx_bytes"],
            drops=seen["drops"] + at_hosts,
            losses=seen["losses"],
            marks=seen["marks"],
            early_drops=seen["early_drops"],
            pause_frames=seen["pause_frames"],
            paused_port_s=seen["paused_ps"] / (PS_PER_US * 1e6),
            deadlocked=self._running.deadlocked() if seen["pause_frames"].any() else (),
            max_queue_pkts=seen["max_queue_pkts"],
            queued_pkts=seen["queued_pkts"],
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
        settings = {
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
        return {"fabric": {**settings, **steered}}

    def restart_maxima(self) -> None:
        self._running.restart_maxima()

    def sample_queues_every(self, interval_ms: float) -> None:
        """Set the interval of queue samples from now on; 0 stops them."""
        self._running.sample_every(interval_ms)

    def queue_samples(self) -> QueueSamples:
        """Return the samples since the last call, with times in seconds since the start."""
        times, lengths = self._running.take_samples()
        return times, lengths.reshape(len(times), len(self._plan.rate_bps))

    @property
    def _running(self) -> RealtimeFabric:
        if self._core is None:
            raise RunError("the fabric core is not running")
        return self._core


@contextmanager
def _core_errors(what: str) -> Iterator[None]:
    """Raise the core's errors as RunError; any call may raise a failure of its thread."""
    try:
        yield
    except (RuntimeError, ValueError, MemoryError) as error:
        raise RunError(f"{what}: {error}") from error


def check(spec: RunSpec, topology: Topology) -> None:
    """Accept every spec."""
    del spec, topology


def check_machine(spec: RunSpec) -> None:
    """Accept every machine."""
    del spec


def make(spec: RunSpec, topology: Topology, raw: Path, caller: Caller) -> FabricDataPlane:
    """Return the core for a RunSpec."""
    del raw, caller
    tuning = default_tuning(spec.link.rate_mbps, spec.clock)
    sample_ms = float(spec.sampling.queues_ms)
    host_queues = HostQueues(topology, spec.link) if spec.link.host_queue == QDISC else None
    return FabricDataPlane(topology, plan_for(spec, topology), tuning, sample_ms, host_queues)
