"""What a point asks of the machine, and what that carries: packet-hops a second, by a simple model. Pure.

A flow sends `share` of what its host's links leave it, in full frames; every data packet is answered by
`acks` packets; each packet crosses `hops` ports. `share` and `acks` are what real kernels did here at k=8
(docs/fidelity.md). With 8 subflows the model says 0.47 M packet-hops/s at k=8 and 5 Mb/s, where 0.50 M were
measured, and 0.59 M at k=4 and 50 Mb/s, where 0.46 M were: good enough to tell what fits from what does not.
Packets scattered over all paths count as 8 subflows: they fill as much, and what arrives out of order is
acknowledged at once (RFC 5681, section 3.2).
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import topos
from controllers.routing import per_packet
from fabric.plan import FRAME_BITS
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, sub_seed
from topos import Topology
from workloads import matrices
from workloads.flow import Flow, Traffic

GOODPUT = (0.45, 0.62, 0.71, 0.76, 0.78, 0.79, 0.80, 0.80)
"""Share of a host's link that one flow a host keeps busy, by subflows from 1; more than 8 gain nothing."""
ALONE = 0.96
ACKS_TCP, ACKS_MPTCP = 0.54, 0.97
"""Packets sent back for each data packet."""
FIT_PCT, FULL_PCT = 70.0, 95.0
"""The one record of how busy a machine may be. At 70 % work waits 2.3 times as long for a CPU as it takes
(load / (1 - load), M/M/1), 3.5 times where noise takes a tenth of the CPU time; at 85 % that would be 6 and
17 times. Beyond the second nobody is on time."""
MIN_RATE_MBPS = 2.0
"""Slower links between real hosts measure bursts and queues: at 1 Mb/s the 64 kB that MPTCP hands to a
subflow at a time take half a second, and a queue of 100 packets 1.2 s."""
ESTIMATED_HOPS_PER_CPU, ESTIMATED_MOST_HOPS = 300_000.0, 1_000_000.0
"""At 70 % busy, where nothing was measured: 2 cores of a cloud VM; one thread carries all packets, so more
than four CPUs help little."""
_SAMPLED_FLOWS, _SAMPLED_LINKS = (24, 256), 200_000
"""Flows whose paths are measured, at least and at most; and links looked at in all."""
_MOST_FLOWS_BUILT = 400_000


@dataclass(frozen=True)
class Demand:
    """What a point asks for: hosts, flows, mean ports a packet crosses, packets and packet-hops a second."""

    hosts: int
    flows: int
    hops: float
    packets_per_s: float

    @property
    def hops_per_s(self) -> float:
        return self.packets_per_s * self.hops


@dataclass(frozen=True)
class Measured:
    """What was seen once: so many packet-hops a second kept the machine so busy."""

    hops_per_s: float
    busy_pct: float


@dataclass(frozen=True)
class Capacity:
    """What this machine carries: everything measured on it, and its number of CPUs for where nothing was."""

    measured: tuple[Measured, ...]
    cpus: int

    @property
    def estimated(self) -> bool:
        return not self.measured

    @property
    def known(self) -> tuple[Measured, ...]:
        """By increasing load; an estimate stands in where there is nothing."""
        most = min(ESTIMATED_MOST_HOPS, ESTIMATED_HOPS_PER_CPU * self.cpus)
        return tuple(sorted(self.measured, key=lambda m: m.hops_per_s)) or (Measured(most, FIT_PCT),)

    @property
    def hops_per_s(self) -> float:
        """What keeps the machine 70 % busy: where `busy_pct` first says so."""
        before = Measured(0.0, 0.0)
        for after in self.known:
            if after.busy_pct > FIT_PCT:
                part = (FIT_PCT - before.busy_pct) / (after.busy_pct - before.busy_pct)
                return before.hops_per_s + part * (after.hops_per_s - before.hops_per_s)
            before = after
        return before.hops_per_s * FIT_PCT / before.busy_pct

    def nearest(self, hops_per_s: float) -> Measured:
        """The measurement to hold a demand against: the smallest that was as much, else the largest."""
        return next((m for m in self.known if m.hops_per_s >= hops_per_s), self.known[-1])

    def busy_pct(self, hops_per_s: float) -> float:
        """How busy a demand would keep the machine: between measurements in proportion, beyond the largest
        as it; above 100 is more than there is."""
        before = Measured(0.0, 0.0)
        for after in self.known:
            if hops_per_s <= after.hops_per_s:
                return _between(before, after, hops_per_s)
            before = after
        return before.busy_pct * hops_per_s / before.hops_per_s


def _between(before: Measured, after: Measured, hops_per_s: float) -> float:
    span = after.hops_per_s - before.hops_per_s
    part = (hops_per_s - before.hops_per_s) / span if span else 1.0
    return before.busy_pct + part * (after.busy_pct - before.busy_pct)


def demand(spec: RunSpec) -> Demand:
    """What `spec` asks for. Raises UsageError for a topology or workload that does not exist."""
    workload = spec.workload
    crowd = _crowd(
        spec.topology.kind,
        tuple(sorted(spec.topology.params.items())),
        workload.matrix,
        tuple(sorted(workload.params.items())),
        spec.seed,
        Traffic(spec.warmup_s + spec.seconds, spec.link.rate_mbps),
    )
    scattered = per_packet(spec.routing)
    subflows = len(GOODPUT) if scattered else spec.transport.subflows
    share = ALONE if crowd.flows == 1 else _share(subflows, crowd.flows / crowd.hosts)
    acks = ACKS_TCP if subflows == 1 else ACKS_MPTCP
    data_per_s = crowd.links_filled * share * spec.link.rate_mbps * 1e6 / FRAME_BITS
    return Demand(crowd.hosts, crowd.flows, crowd.hops, data_per_s * (1 + acks))


def rate_carried(capacity: Capacity, topology: TopologySpec) -> float:
    """The link rate in Mb/s at which one_to_one with 8 subflows would keep the machine 70 % busy."""
    unit = RunSpec(LinkSpec(1.0), topology, TransportSpec(len(GOODPUT)))
    return capacity.hops_per_s / demand(unit).hops_per_s


def rounded_down(rate_mbps: float) -> float:
    """To one significant digit, two below 2: a rate to type."""
    digits = 10.0 ** math.floor(math.log10(rate_mbps))
    step = digits / 10 if rate_mbps / digits < 2 else digits
    return math.floor(rate_mbps / step + 1e-6) * step


def _share(subflows: int, flows_a_host: float) -> float:
    """Of a host's link that its flows keep busy: the more there are, the better their gaps are filled."""
    alone = GOODPUT[min(subflows, len(GOODPUT)) - 1]
    return 1 - (1 - alone) / math.sqrt(max(1.0, flows_a_host))


@dataclass(frozen=True)
class _Crowd:
    hosts: int
    flows: int
    links_filled: float
    """Hosts' links' worth of traffic if the network itself had no limits."""
    hops: float


@functools.lru_cache(maxsize=4)
def _topology(kind: str, params: tuple[tuple[str, int], ...]) -> Topology:
    """Return the network. Points of a plan come in groups on one network, so a few are kept."""
    return topos.build(kind, dict(params))


@functools.lru_cache(maxsize=512)
def _crowd(
    kind: str,
    params: tuple[tuple[str, int], ...],
    matrix: str,
    arguments: tuple[tuple[str, int | str], ...],
    seed: int,
    traffic: Traffic,
) -> _Crowd:
    topology = _topology(kind, params)
    hosts = len(topology.hosts)
    if matrix == "all_to_all" and hosts * hosts > _MOST_FLOWS_BUILT:
        names = [topology.nodes[host].name for host in topology.hosts]
        some = [Flow(names[0], names[n * (hosts - 1) // 24]) for n in range(1, 25)]
        return _Crowd(hosts, hosts * (hosts - 1), float(hosts), _mean_hops(topology, some))
    flows = matrices.build(matrix, topology, dict(arguments), sub_seed(seed, "workload"), traffic)
    if matrices.MATRICES[matrix].generated:
        return _Crowd(hosts, len(flows), _offered(flows, traffic, hosts), _mean_hops(topology, flows))
    sent, received = (Counter(getattr(flow, end) for flow in flows) for end in ("src", "dst"))
    filled = sum(1 / max(sent[flow.src], received[flow.dst]) for flow in flows)
    return _Crowd(hosts, len(flows), filled, _mean_hops(topology, flows))


def _offered(flows: Sequence[Flow], traffic: Traffic, hosts: int) -> float:
    """At most, in hosts' links: flows without end fill one, of others what their sizes and rates come to."""
    sized = sum(flow.size_bytes for flow in flows) * 8e-6 / (traffic.seconds * traffic.host_mbps)
    constant = sum(flow.rate_mbps for flow in flows) / traffic.host_mbps
    endless = sum(not flow.size_bytes and not flow.rate_mbps for flow in flows)
    return min(float(hosts), endless + sized + constant)


def _mean_hops(topology: Topology, flows: Sequence[Flow]) -> float:
    """Mean number of ports on the flows' shortest paths, over some of them."""
    least, most = _SAMPLED_FLOWS
    count = min(most, max(least, _SAMPLED_LINKS // len(topology.links)))
    sampled = flows[:: max(1, len(flows) // count)]
    forwarders = frozenset(topology.forwarders)
    return sum(_distance(topology, forwarders, flow) for flow in sampled) / len(sampled)


def _distance(topology: Topology, forwarders: frozenset[int], flow: Flow) -> int:
    """Return the links from source to destination, by a breadth-first search from both ends."""
    start, end = topology.index(flow.src), topology.index(flow.dst)
    ends = {start, end}
    growing, waiting = {start}, {end}
    reached, reached_by_other = {start}, {end}
    links = 0
    while growing and growing.isdisjoint(waiting):
        if len(growing) > len(waiting):
            growing, waiting = waiting, growing
            reached, reached_by_other = reached_by_other, reached
        growing = {
            there
            for here in growing
            for there in topology.adjacency[here]
            if there in forwarders or there in ends
        }
        growing -= reached
        reached |= growing
        links += 1
    return links
