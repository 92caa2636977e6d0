"""Pings along the paths of the flows' subflows: UDP echo between the hosts' kernels.

A probe's ports are chosen so that its requests take the path of a subflow's data and its answers the path of
the subflow's ACKs (controllers/probes.py). A ping has 64 bytes of payload, 106 in the fabric's count. One
ping per second along every subflow loads each link it crosses with 848 bit/s in each direction. That is 0.3 %
of a 5 Mb/s host link with 8 subflows out and 8 in.

Pings measure time in the network: from just before the system call that sends to the kernel's receive time
stamp, in both directions. The time that a packet then waits for this program does not count.
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
from controllers.probes import ProbePorts
from controllers.routing import tables_of
from engines.emulation.kernel.mptcp_genl import EventKind, MptcpEvent
from engines.emulation.kernel.namespaces import HostRef, map_in_netns
from engines.emulation.kernel.proc import reserve_fds
from engines.emulation.measure.socket_table import SocketReadings
from engines.emulation.traffic.driver import subflow_paths
from fabric._core import Pinger
from model.flows import AddressPair, PlannedFlow
from model.spec import RunSpec, sub_seed
from topos.topology import Topology

MAX_PROBES = 2048
LOST_AFTER_S = 30.0
"""Unbounded queues can delay a packet by more than 10 s, so a ping counts as lost only after this time."""

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
    """One entry per ping, in order of sending. `sent_s` is CLOCK_MONOTONIC; `rtt_ms` is `out_ms` plus
    `back_ms`; all three are nan for a ping without an answer."""

    sent_s: npt.NDArray[np.float64]
    flow: npt.NDArray[np.int64]
    subflow: npt.NDArray[np.int64]
    rtt_ms: npt.NDArray[np.float64]
    out_ms: npt.NDArray[np.float64]
    back_ms: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.sent_s)


def decided(pings: PingReadings, now_s: float) -> PingReadings:
    """Return the pings whose outcome is known at `now_s`. Pure.

    An unanswered ping is unknown until twice the longest RTT has passed.
    """
    back = pings.rtt_ms[~np.isnan(pings.rtt_ms)]
    patience_s = max(1.0, 2 * float(back.max(initial=0.0)) / 1000)
    known = ~np.isnan(pings.rtt_ms) | (pings.sent_s < now_s - patience_s)
    return PingReadings(*(getattr(pings, f.name)[known] for f in dataclasses.fields(pings)))


def probes_for(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    seen: SocketReadings | None = None,
    most: int = MAX_PROBES,
) -> list[Probe]:
    """Return one probe per subflow of every flow.

    If that is more than `most`, return probes of first subflows only; if that still is, of every n-th flow.
    Without `seen`, planned addresses and ports are used. They are correct with the userspace path manager,
    unless a subflow had to use another port. With `seen` (SocketTable.read) the actual ones are used. Takes
    0.1 ms per probe at k=8. If every packet chooses its own path, pings do too.
    """
    wanted = _thinned(flows, most)
    paths = _planned(topology, wanted) if seen is None else _found(wanted, seen)
    seed = sub_seed(spec.seed, "routing")
    search = ProbePorts(topology, tables_of(topology, spec.routing), spec.routing, seed)
    name_of = {nic.ip: topology.nodes[nic.host].name for nic in topology.nics}
    probes = []
    only_first = sum(flow.subflows for flow in flows) > most
    for flow, subflow, at in paths:
        if subflow and only_first:
            continue
        ports = search.find(at.laddr, at.lport, at.raddr, at.rport)
        if ports is None:
            raise RunError(
                f"pinging subflow {subflow} of flow {flow} ({at.laddr}:{at.lport} to {at.raddr}:{at.rport}): "
                "no UDP ports take its path; run without pings"
            )
        ends = name_of[at.laddr], name_of[at.raddr], at.laddr, at.raddr
        probes.append(Probe(flow, subflow, *ends, *ports))
    return probes


def _thinned(flows: Sequence[PlannedFlow], most: int) -> Sequence[PlannedFlow]:
    """Return all flows, or every n-th if one probe per flow is too many."""
    if most < 1:
        return ()
    step = -(-len(flows) // most) if sum(flow.subflows for flow in flows) > most else 1
    return flows[:: max(1, step)]


def _planned(topology: Topology, flows: Iterable[PlannedFlow]) -> Iterator[tuple[int, int, AddressPair]]:
    for flow in flows:
        further = subflow_paths(topology, flow.subflows)
        first = flow.seen_by_sender
        event = MptcpEvent(EventKind.ESTABLISHED, 0, first, server_side=False, local_id=0, error=0)
        for subflow, at in enumerate([first, *further(event)]):
            yield flow.flow, subflow, at


def _found(flows: Iterable[PlannedFlow], seen: SocketReadings) -> Iterator[tuple[int, int, AddressPair]]:
    wanted = {flow.flow for flow in flows}
    columns = (seen.flow, seen.subflow, seen.laddr, seen.lport, seen.raddr, seen.rport)
    for flow, subflow, laddr, lport, raddr, rport in zip(*(c.tolist() for c in columns), strict=True):
        if flow in wanted:
            yield flow, subflow, AddressPair(_dotted(laddr), lport, _dotted(raddr), rport)


def _dotted(address: int) -> str:
    return str(ipaddress.IPv4Address(address))


class PathPinger:
    """Sends pings along all `probes`, each once per `interval_ms`, spread evenly over it.

    One thread sends and answers for all hosts. A ping without an answer after `lost_after_s` counts as lost;
    later answers are ignored. `cpu` pins the thread; -1 lets it float. Raises RunError that names the host
    whose namespace or port is not available.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        hosts: Mapping[str, HostRef],
        interval_ms: float,
        cpu: int = -1,
        lost_after_s: float = LOST_AFTER_S,
    ) -> None:
        # Send consecutive pings from different hosts.
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
        """Stop answering and release the ports. Results that were not taken are lost."""
        pinger, self._pinger = self._pinger, None
        if pinger is not None:
            pinger.stop()

    def start(self) -> None:
        """Send the first ping now and continue."""
        self._running.start()

    def pause(self) -> None:
        """Stop sending; pings in flight may still be answered."""
        self._running.pause()

    def resume(self) -> None:
        """Continue after a pause."""
        self._running.resume()

    def take(self, final: bool = False) -> PingReadings:
        """Return the pings answered or lost since the last `take`; with `final`, pings in flight are lost.

        Raises RunError with the reason if the thread has died.
        """
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
        """Return the thread's CPU time so far, including the kernel's work for it."""
        return self._running.cpu_s()

    @property
    def _running(self) -> Pinger:
        if self._pinger is None:
            raise RunError("the pings are closed")
        return self._pinger


def _open(ends: Sequence[Endpoint], hosts: Mapping[str, HostRef]) -> list[int]:
    """Return the file descriptors of a bound UDP socket per end; the caller owns them."""
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
