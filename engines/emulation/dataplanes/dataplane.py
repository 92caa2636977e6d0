"""The seam between the hosts' veths and whatever carries frames between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from controllers.hashing import FiveTuple
from controllers.scheduler import Network
from model.spec import LinkEvent, RunSpec

Counts = npt.NDArray[np.uint64]
Octets = Callable[[], Mapping[FiveTuple, int]]
QueueSamples = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]
"""Times, by the clock of `Reading.now_s`, and, a row a time, each port's queue length in packets."""


@dataclass(frozen=True)
class Wiring:
    """Where hosts are plugged in: `ifindexes[nic]` is the run-side veth of `topology.nics[nic]`, and
    `pids[host]` a process in the network namespace of the host with that node index."""

    ifindexes: Sequence[int]
    pids: Mapping[int, int]


@dataclass(frozen=True)
class Cpus:
    """Where a data plane wants hosts' work done: the mask for receive packet steering (empty: as it comes), a
    CPU for threads that talk to hosts (-1: any). What hosts send is received on the CPUs of `core_mask`; they
    do the work of `core_share` of the hosts too."""

    receive_mask: str = ""
    helper: int = -1
    core_mask: str = ""
    core_share: float = 0.0


class DataPlane(Protocol):
    """Takes frames from the run-side veth ends and delivers them to the run-side end of their destination.

    All calls come from one thread, in the run's own network namespace.
    """

    @property
    def partial_checksums(self) -> bool:
        """Whether frames may come with checksums that the hosts left to be computed."""

    @property
    def answers_arp(self) -> bool:
        """Whether hosts ask for each other's MACs; else they send everything to one gateway's."""

    @property
    def queues_at_hosts(self) -> bool:
        """Whether frames wait in the hosts' own kernels. TCP then hands down single segments: with offloads
        off it still makes up to 64 kB at a time (net/core/sock.c, sk_setup_caps), which a queue counts as one
        packet and lets go at once."""

    def start(self, wiring: Wiring) -> None:
        """Begin to carry frames."""

    def stop(self) -> None:
        """Carry nothing more, and let go of the interfaces. Harmless when not started."""

    def set_link(self, link: int, up: bool) -> None:
        """`topology.links[link]` fails (frames on it are lost) or comes back."""

    def dpctl(self, switch: str, *arguments: str) -> str:
        """The answer of OpenFlow's control tool for one switch, for people."""


@dataclass(frozen=True)
class Reading:
    """What a data plane has counted since its start, at its own second `now_s`; arrays have an entry a port
    (model/network_plan.py), whose counters were read at `read_s`: where that takes its time, not at once.
    `astray` are frames lost elsewhere than in a queue, by place; `cpu_s` CPU time by who used it, of whom
    `alone` does all the forwarding in one thread; `scalars` whatever else it counts, for the record;
    `lateness` its histogram of late frames (fabric/readings.py), where it knows."""

    now_s: float
    read_s: npt.NDArray[np.float64]
    tx_packets: Counts
    tx_bytes: Counts
    drops: Counts
    losses: Counts
    marks: Counts
    max_queue_pkts: npt.NDArray[np.uint32]
    hops: int
    astray: Mapping[str, int]
    cpu_s: Mapping[str, float]
    scalars: Mapping[str, float] = field(default_factory=dict)
    lateness: Counts | None = None
    alone: str = ""
    paused_s: float = 0.0
    """How long its clock has stood still since the start, and in the longest pause since `restart_maxima`."""
    longest_pause_s: float = 0.0
    unheld_s: float = 0.0
    """How long it has gone on although a CPU had no time left for hosts."""
    wakeups: Mapping[int, Counts] = field(default_factory=dict)
    """Of each probed CPU, the histogram of late wake-ups (as `lateness`)."""


class MeasuredDataPlane(DataPlane, Protocol):
    """What a point needs besides: counters, samples, link events, and to know when it has died."""

    @property
    def cpus(self) -> Cpus: ...

    @property
    def foretells_paths(self) -> bool:
        """Whether flows take the paths that controllers/routing.py says."""

    def network(self, spec: RunSpec, octets: Octets) -> AbstractContextManager[Network]:
        """Itself, as an application that schedules flows sees it. `octets` reads the bytes that each flow's
        host has sent, for data planes that do not count them."""

    def check(self) -> None:
        """Raises RunError with the reason when something it needs has died. Cheap."""

    def set_share(self, event: LinkEvent) -> None:
        """Carries out a link event now."""

    def reading(self) -> Reading:
        """Counters since the start. Raises RunError when it has died, with its reason."""

    def restart_maxima(self) -> None:
        """From now on `max_queue_pkts` and `longest_pause_s` count anew."""

    def queue_samples(self) -> QueueSamples:
        """Those not taken yet; where none were asked for, none."""

    def provenance(self) -> Mapping[str, object]:
        """How it is run, for the record."""


class NoDataPlane:
    """Hosts without a network between them: every frame is lost."""

    partial_checksums = True
    answers_arp = False
    queues_at_hosts = False

    def start(self, wiring: Wiring) -> None:
        del wiring

    def stop(self) -> None:
        pass

    def set_link(self, link: int, up: bool) -> None:
        del link, up

    def dpctl(self, switch: str, *arguments: str) -> str:
        del arguments
        return f"no OpenFlow here: nothing forwards at {switch}\n"


def cpu_mask(cpus: Collection[int]) -> str:
    """Hexadecimal as the kernel parses it: at most 32 CPUs between commas (lib/bitmap-str.c)."""
    words = [0] * (max(cpus) // 32 + 1)
    for cpu in cpus:
        words[cpu // 32] |= 1 << cpu % 32
    first, *rest = reversed(words)
    return ",".join([f"{first:x}", *(f"{word:08x}" for word in rest)])


def last_cpu() -> int:
    """For the thread that forwards; -1 where there is but one."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[-1] if len(cpus) > 1 else -1


CORE_SHARES = {1: 0.15}
"""By number of CPUs beside the core's: with one, it is full while the core's has a third of its time left
(k=8, 10 Mb/s, 8 subflows), and so much of the hosts' work balances them. More CPUs are enough."""


def all_but(cpu: int) -> Cpus:
    """Everything off `cpu`; as it comes where that is -1 or the only one."""
    others = sorted(os.sched_getaffinity(0) - {cpu})
    return Cpus(cpu_mask(others), others[0]) if cpu >= 0 and others else Cpus()


def balanced(cpu: int) -> Cpus:
    """As `all_but`; but what hosts send is received on `cpu`, where its reader runs, and it does the work of
    so many hosts that no other CPU is full while it has time left."""
    rest = all_but(cpu)
    others = len(os.sched_getaffinity(0)) - 1
    if not rest.receive_mask:
        return rest
    return replace(rest, core_mask=cpu_mask([cpu]), core_share=CORE_SHARES.get(others, 0.0))
