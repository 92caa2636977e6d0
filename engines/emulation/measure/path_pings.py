"""Pings that take the paths of the flows' own subflows: UDP echo between the hosts' kernels.

A probe's ports are chosen so that the fabric sends its requests the way of a subflow's data and its
answers the way of that subflow's ACKs (controllers/probes.py). A ping is 64 bytes of payload, 106 as the
fabric counts them: one a second along every subflow is 848 bit/s on each link it crosses, each way: 0.3 % of
a 5 Mb/s host link with 8 subflows out and 8 in.

What is measured is time in the network: from just before the sending system call to the kernel's
reception time stamp, there and back; how long the packet then waited for this program is left out.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt

from common.errors import RunError
from controllers.groups import ecmp_groups
from controllers.probes import ProbePorts
from engines.emulation.kernel.netns import HostRef, map_in_netns, reserve_fds
from engines.emulation.measure.socket_table import SubflowReadings
from engines.emulation.mptcp.mptcp_genl import Event, EventKind
from engines.emulation.traffic.demands import subflow_paths
from fabric._core import Pinger
from model.flows import AddressPair, PlannedFlow
from model.spec import RunSpec, sub_seed
from topos.topology import Topology

MOST_PROBES = 2048
LOST_AFTER_S = 30.0
"""Unbounded queues keep a packet for 10 s and more: only then is it gone for certain."""

Endpoint = tuple[str, str, int]
"""A host's name, address and UDP port."""


@dataclass(frozen=True)
class Probe:
    """Pings from `src` to `dst` (hosts' names) that take the paths of one subflow and of its ACKs."""

    flow: int
    subflow: int
    src: str
    dst: str
    src_ip: str
    dst_ip: str
    sport: int
    dport: int

    @property
    def ends(self) -> tuple[Endpoint, Endpoint]:
        return (self.src, self.src_ip, self.sport), (self.dst, self.dst_ip, self.dport)


@dataclass(frozen=True, eq=False)
class PingReadings:
    """One entry a ping, in order of sending. `sent_s` is CLOCK_MONOTONIC; the round trip is its way out and
    its way back; all three are nan for a ping that did not come back in time."""

    sent_s: npt.NDArray[np.float64]
    flow: npt.NDArray[np.int64]
    subflow: npt.NDArray[np.int64]
    rtt_ms: npt.NDArray[np.float64]
    out_ms: npt.NDArray[np.float64]
    back_ms: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.sent_s)


def decided(pings: PingReadings, now_s: float) -> PingReadings:
    """Without those of which it is not known at `now_s` whether they are lost: that are out, and not for
    longer than twice the longest that came back. Pure."""
    back = pings.rtt_ms[~np.isnan(pings.rtt_ms)]
    patience_s = max(1.0, 2 * float(back.max(initial=0.0)) / 1000)
    known = ~np.isnan(pings.rtt_ms) | (pings.sent_s < now_s - patience_s)
    return PingReadings(*(getattr(pings, f.name)[known] for f in dataclasses.fields(pings)))


def probes_for(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    seen: SubflowReadings | None = None,
    most: int = MOST_PROBES,
) -> list[Probe]:
    """A probe a subflow of every flow; where that is more than `most`, of every flow's first subflow alone;
    and where that still is, of every n-th flow's.

    Without `seen`, subflows are where they are planned to be: true of the userspace path manager, unless one
    had to be tried from another port. With `seen` (SocketTable.read) they are where they are.
    0.1 ms a probe at k=8. Where every packet has a path of its own, so has every ping.
    """
    wanted = _thinned(flows, most)
    paths = _planned(topology, wanted) if seen is None else _found(wanted, seen)
    seed = sub_seed(spec.seed, "routing")
    search = ProbePorts(topology, ecmp_groups(topology), spec.routing, seed)
    name_of = {nic.ip: topology.nodes[nic.host].name for nic in topology.nics}
    probes = []
    only_first = sum(flow.subflows for flow in flows) > most
    for flow, subflow, at in paths:
        if subflow and only_first:
            continue
        ports = search.find(at.laddr, at.lport, at.raddr, at.rport)
        if ports is None:
            raise RunError(
                f"no UDP ports give pings the paths of flow {flow}'s subflow {subflow} "
                f"({at.laddr}:{at.lport} to {at.raddr}:{at.rport}): run without pings"
            )
        ends = name_of[at.laddr], name_of[at.raddr], at.laddr, at.raddr
        probes.append(Probe(flow, subflow, *ends, *ports))
    return probes


def _thinned(flows: Sequence[PlannedFlow], most: int) -> Sequence[PlannedFlow]:
    """All flows, or every n-th where even one probe a flow is too much."""
    if most < 1:
        return ()
    step = -(-len(flows) // most) if sum(flow.subflows for flow in flows) > most else 1
    return flows[:: max(1, step)]


def _planned(topology: Topology, flows: Iterable[PlannedFlow]) -> Iterator[tuple[int, int, AddressPair]]:
    for flow in flows:
        further = subflow_paths(topology, flow.subflows)
        first = flow.seen_by_sender
        event = Event(EventKind.ESTABLISHED, 0, first, server_side=False, local_id=0, error=0)
        for subflow, at in enumerate([first, *further(event)]):
            yield flow.flow, subflow, at


def _found(flows: Iterable[PlannedFlow], seen: SubflowReadings) -> Iterator[tuple[int, int, AddressPair]]:
    wanted = {flow.flow for flow in flows}
    columns = (seen.flow, seen.subflow, seen.laddr, seen.lport, seen.raddr, seen.rport)
    for flow, subflow, laddr, lport, raddr, rport in zip(*(c.tolist() for c in columns), strict=True):
        if flow in wanted:
            yield flow, subflow, AddressPair(_dotted(laddr), lport, _dotted(raddr), rport)


def _dotted(address: int) -> str:
    return str(ipaddress.IPv4Address(address))


class PathPinger:
    """Pings along all `probes`, each once in `interval_ms`, spread evenly over it, from `start` on.

    One thread sends and answers for all hosts. A ping that has not come back after `lost_after_s` counts
    as lost, and a later answer is not taken for another's. `cpu` pins the thread; -1 lets it float.
    Raises RunError naming the host whose namespace or port cannot be had.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        hosts: Mapping[str, HostRef],
        interval_ms: float,
        cpu: int = -1,
        lost_after_s: float = LOST_AFTER_S,
    ) -> None:
        # Neighbours in time start at different hosts.
        self._probes = sorted(probes, key=lambda probe: (probe.subflow, probe.flow))
        ends = sorted({end for probe in probes for end in probe.ends})
        number = {end: i for i, end in enumerate(ends)}
        ways = [
            (number[probe.ends[0]], int(ipaddress.IPv4Address(probe.dst_ip)), probe.dport)
            for probe in self._probes
        ]
        sockets = _open(ends, hosts)
        self._flow = np.array([probe.flow for probe in self._probes], np.int64)
        self._subflow = np.array([probe.subflow for probe in self._probes], np.int64)
        self._pinger: Pinger | None = Pinger(
            sockets, ways, interval_ms=interval_ms, lost_after_s=lost_after_s, cpu=cpu
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Answer nothing more, and give the ports back. What was not taken is gone."""
        pinger, self._pinger = self._pinger, None
        if pinger is not None:
            pinger.stop()

    def start(self) -> None:
        """Send the first ping now."""
        self._running.start()

    def pause(self) -> None:
        """Send no more; what is under way may still come back."""
        self._running.pause()

    def resume(self) -> None:
        """Go on after a pause."""
        self._running.resume()

    def take(self, final: bool = False) -> PingReadings:
        """The pings that came back or were lost since the last `take`; with `final` those still under way
        too, as lost. Raises RunError when the thread has died, with its reason."""
        try:
            found = self._running.take(final)
        except RuntimeError as error:
            raise RunError(f"the pings stopped: {error}") from error
        probe = found["probe"].astype(np.int64)
        rtt_ms = found["out_ms"] + found["back_ms"]
        return PingReadings(
            found["sent_s"],
            self._flow[probe],
            self._subflow[probe],
            rtt_ms,
            found["out_ms"],
            found["back_ms"],
        )

    def cpu_s(self) -> float:
        """CPU time of the thread so far, the kernel's work for it included."""
        return self._running.cpu_s()

    @property
    def _running(self) -> Pinger:
        if self._pinger is None:
            raise RunError("the pings are closed")
        return self._pinger


def _open(ends: Sequence[Endpoint], hosts: Mapping[str, HostRef]) -> list[int]:
    """A bound UDP socket for every end; their file descriptors, whose owner the caller becomes."""
    reserve_fds(len(ends))
    opened: list[socket.socket] = []

    def open_socket(name: str, ip: str, port: int) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.append(sock)
        try:
            sock.bind((ip, port))
        except OSError as error:
            raise RunError(f"binding UDP {ip}:{port} on {name} for pings: {error.strerror}") from error

    try:
        map_in_netns([(hosts[end[0]].pid, partial(open_socket, *end)) for end in ends])
    except BaseException:
        for sock in opened:
            sock.close()
        raise
    return [sock.detach() for sock in opened]
