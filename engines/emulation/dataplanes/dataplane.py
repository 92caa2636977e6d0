"""The DataPlane protocol: the interface between the hosts' veths and the code that carries frames."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from controllers.hashing import FiveTuple
from controllers.scheduler import Network
from engines.emulation.sandbox.inside import Caller
from model.spec import RunSpec
from topos.topology import Topology

Counts = npt.NDArray[np.uint64]
Octets = Callable[[], Mapping[FiveTuple, int]]
Change = tuple[float, Callable[[], None]]
QueueSamples = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]
"""Sample times by the clock of `PlaneReading.now_s`, and queue lengths in packets, one row per time."""


@dataclass(frozen=True)
class Cpus:
    """CPUs on which a data plane wants the hosts' work to run.

    `receive_mask` is for receive packet steering (empty: no steering). `helper` is for threads that exchange
    packets with hosts (-1: any). The CPUs of `core_mask` receive what hosts send; they also receive for the
    share `core_share` of the hosts.
    """

    receive_mask: str = ""
    helper: int = -1
    core_mask: str = ""
    core_share: float = 0.0


class DataPlane(Protocol):
    """Carries frames from the run-side veth ends to the run-side end of their destination.

    All calls come from one thread, in the run's own network namespace.
    """

    @property
    def partial_checksums(self) -> bool:
        """Whether frames may arrive with checksums that are not computed yet."""

    @property
    def answers_arp(self) -> bool:
        """Whether hosts resolve each other by ARP; if not, they send all frames to one gateway MAC."""

    @property
    def queues_at_hosts(self) -> bool:
        """Whether frames queue in the hosts' kernels. TCP must then send single segments: even without
        offloads it builds packets of up to 64 kB (net/core/sock.c, sk_setup_caps), which a queue counts
        as one packet and sends at once."""

    def start(self, ifindexes: Sequence[int], pids: Mapping[int, int]) -> None:
        """Start carrying frames.

        `ifindexes[nic]` is the run-side veth of `topology.nics[nic]`; `pids[host]` is a process in the
        network namespace of the host with that node index.
        """

    def stop(self) -> None:
        """Stop carrying frames and release the interfaces. No effect if it was not started."""

    def set_link(self, link: int, up: bool) -> None:
        """Take `topology.links[link]` down (frames on it are lost) or up."""

    def check(self) -> None:
        """Raise RunError with the reason if a part of the data plane has died. Cheap."""

    def dpctl(self, switch: str, *arguments: str) -> str:
        """Return the output of OpenFlow's control tool for one switch."""


@dataclass(frozen=True)
class PlaneReading:
    """Counters of a data plane since its start, at its own time `now_s`.

    Arrays have one entry per port (model/network_plan.py). Port i was read at `read_s[i]`, because reading
    all ports may take time. `astray` counts frames lost outside queues, by place. `cpu_s` is CPU time by
    consumer; `alone` names the one that forwards everything in a single thread. `scalars` holds other
    counters for the record. `lateness` is the histogram of late frames (fabric/readings.py), if known.
    """

    now_s: float
    read_s: npt.NDArray[np.float64]
    tx_packets: Counts
    tx_bytes: Counts
    drops: Counts
    losses: Counts
    marks: Counts
    early_drops: Counts
    pause_frames: Counts
    paused_port_s: npt.NDArray[np.float64]
    max_queue_pkts: npt.NDArray[np.uint32]
    hops: int
    astray: Mapping[str, int]
    cpu_s: Mapping[str, float]
    queued_pkts: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    """Packets in the queue of each port; empty if the data plane does not know."""
    scalars: Mapping[str, float] = field(default_factory=dict)
    lateness: Counts | None = None
    alone: str = ""
    deadlocked: Sequence[int] = ()
    """Ports that wait for one another's pause frames."""
    paused_s: float = 0.0
    """Total time for which its clock was paused, and the longest pause since `restart_maxima`."""
    longest_pause_s: float = 0.0
    unheld_s: float = 0.0
    """Time for which the clock ran although a CPU had no time left for hosts."""
    wakeups: Mapping[int, Counts] = field(default_factory=dict)
    """Histogram of late wake-ups of each probed CPU (as `lateness`)."""


class MeasuredDataPlane(DataPlane, Protocol):
    """What a point needs in addition: counters, samples, link events and detection of a crash."""

    @property
    def cpus(self) -> Cpus: ...

    @property
    def foretells_paths(self) -> bool:
        """Whether flows take the paths that controllers/routing.py predicts."""

    def network(self, spec: RunSpec, octets: Octets) -> AbstractContextManager[Network]:
        """Return this network as a scheduler application sees it. `octets` returns the bytes that each
        flow's host has sent, for data planes that do not count them."""

    def changes(self, spec: RunSpec) -> Sequence[Change]:
        """Return what changes links and routing, and when, in s from the start of traffic."""

    def reading(self) -> PlaneReading:
        """Return the counters since the start. Raises RunError with the reason if it has died."""

    def restart_maxima(self) -> None:
        """Reset `max_queue_pkts` and `longest_pause_s`."""

    def queue_samples(self) -> QueueSamples:
        """Return the samples since the last call; empty without sampling."""

    def provenance(self) -> Mapping[str, object]:
        """Return the configuration for the record."""


class NoDataPlane:
    """A data plane that loses every frame: hosts without a network between them."""

    partial_checksums = True
    answers_arp = False
    queues_at_hosts = False

    def start(self, ifindexes: Sequence[int], pids: Mapping[int, int]) -> None:
        del ifindexes, pids

    def stop(self) -> None:
        pass

    def set_link(self, link: int, up: bool) -> None:
        del link, up

    def check(self) -> None:
        pass

    def dpctl(self, switch: str, *arguments: str) -> str:
        del arguments
        return f"no OpenFlow here: nothing forwards at {switch}\n"


def cpu_mask(cpus: Collection[int]) -> str:
    """Return a hexadecimal mask as the kernel parses it: groups of 32 CPUs (lib/bitmap-str.c)."""
    words = [0] * (max(cpus) // 32 + 1)
    for cpu in cpus:
        words[cpu // 32] |= 1 << cpu % 32
    first, *rest = reversed(words)
    return ",".join([f"{first:x}", *(f"{word:08x}" for word in rest)])


def last_cpu() -> int:
    """Return the CPU for the forwarding thread; -1 if there is only one CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[-1] if len(cpus) > 1 else -1


CORE_SHARES = {1: 0.15}
"""Share of hosts whose work the core's CPU does, by the number of other CPUs. A single other CPU is full
while the core's CPU is one third idle (k=8, 10 Mb/s, 8 subflows); this share balances them."""


def all_but(cpu: int) -> Cpus:
    """Keep hosts' work off `cpu`; no steering if it is -1 or the only CPU."""
    others = sorted(os.sched_getaffinity(0) - {cpu})
    return Cpus(cpu_mask(others), others[0]) if cpu >= 0 and others else Cpus()


def balanced(cpu: int) -> Cpus:
    """Keep hosts' work off `cpu` as `all_but`, except for two parts.

    `cpu` receives what hosts send, because the thread that reads it runs there. It also does the work of so
    many hosts that no other CPU is full while it is partly idle.
    """
    rest = all_but(cpu)
    others = len(os.sched_getaffinity(0)) - 1
    if not rest.receive_mask:
        return rest
    return replace(rest, core_mask=cpu_mask([cpu]), core_share=CORE_SHARES.get(others, 0.0))


@dataclass(frozen=True)
class Plane:
    """One data plane: what it is, and its module, which is imported only when it is used.

    To add a data plane, write a module with these three functions and add an entry to DATAPLANES.
    """

    about: str
    module: str

    def check(self, spec: RunSpec, topology: Topology) -> None:
        """Raise UsageError for a spec that it cannot carry; starts nothing."""
        importlib.import_module(self.module).check(spec, topology)

    def check_machine(self, spec: RunSpec) -> None:
        """Raise HostUnfitError for what this machine lacks."""
        importlib.import_module(self.module).check_machine(spec)

    def make(self, spec: RunSpec, topology: Topology, raw: Path, caller: Caller) -> MeasuredDataPlane:
        """Return it, in the run's private namespaces, with the folder for its logs and the caller, whose
        programs may run there."""
        plane: MeasuredDataPlane = importlib.import_module(self.module).make(spec, topology, raw, caller)
        return plane


FABRIC = "fabric"
OVS = "ovs"
DATAPLANES: dict[str, Plane] = {
    FABRIC: Plane("refabric's own core in real time", "engines.emulation.dataplanes.fabric_dataplane"),
    OVS: Plane("Open vSwitch under an OpenFlow controller", "engines.emulation.dataplanes.ovs.dataplane"),
}
