"""The flows of a point with their addresses and ports, identical in every engine. Pure.

Ports depend on the flow only. A flow's 5-tuples, and with them its ECMP choices, are therefore identical in
every run of the same spec.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from common.errors import UsageError
from model.congestion import BASELINE, in_force
from model.result import UDP
from model.spec import TCP, TRANSPORTS, RunSpec, sub_seed
from topos.topology import Topology
from workloads.flow import Flow, Traffic
from workloads.matrices import build

FIRST_PORT = 5201
FIRST_CPORT = 1100
STRIDE = 950
"""Distance between local ports of a flow's subflows; 32 subflows stay below the ephemeral ports (32768)."""
MAX_FLOWS_A_HOST = STRIDE
"""Limit on real hosts, set by their local ports; simulated hosts reuse ports."""
_PORTS = 60_000
NO_CC = "none"
"""Congestion control of flows of constant rate."""


@dataclass(frozen=True, slots=True)
class AddressPair:
    """Addresses and ports of one subflow: local address and port, remote address and port."""

    laddr: str
    lport: int
    raddr: str
    rport: int


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """One flow: hosts, addresses, server port, and the client port of its first subflow.

    `size_bytes` is the payload; 0 means that the flow sends until the run ends. The flow starts `start_s`
    seconds after the common start of traffic, or after the flow number `after` has completed. `subflows` is
    1 for plain TCP; `cc` is a name of model/congestion.py. A flow of constant rate (`rate_mbps` > 0, headers
    included) has neither, and such flows follow all others.
    """

    flow: int
    src: str
    dst: str
    src_ip: str
    dst_ip: str
    port: int
    cport: int
    size_bytes: int = 0
    start_s: float = 0.0
    subflows: int = 1
    cc: str = BASELINE
    after: int | None = None
    rate_mbps: float = 0.0
    dscp: int = 0

    @property
    def transport(self) -> str:
        if self.rate_mbps:
            return UDP
        if self.cc in TRANSPORTS:
            return self.cc
        return "mptcp" if self.mptcp else TCP

    @property
    def mptcp(self) -> bool:
        return self.subflows > 1

    def columns(self) -> dict[str, Any]:
        """Return the columns of a FlowRow that are known before the run."""
        return {
            "flow": self.flow,
            "src": self.src,
            "dst": self.dst,
            "src_ip": self.src_ip,
            "dst_ip": self.dst_ip,
            "sport": self.cport,
            "dport": self.port,
            "transport": self.transport,
            "subflows_asked": self.subflows,
            "size_bytes": self.size_bytes,
            "rate_mbps": self.rate_mbps,
        }

    @property
    def seen_by_receiver(self) -> AddressPair:
        return AddressPair(self.dst_ip, self.port, self.src_ip, self.cport)

    @property
    def seen_by_sender(self) -> AddressPair:
        return AddressPair(self.src_ip, self.cport, self.dst_ip, self.port)


def planned_flows(spec: RunSpec, topology: Topology) -> tuple[PlannedFlow, ...]:
    """Return the workload's flows in the order of the matrix, with ports.

    Each flow takes the next free ports of its hosts; after `MAX_FLOWS_A_HOST` flows the port numbers
    repeat. The flows of the last two points are kept, because the steps of a run ask for the same ones.
    Raises UsageError as `build` does.
    """
    return _planned(_Point(spec, topology))


class _Point:
    """A spec on a network. Two are equal if the specs are, sampling aside, and the network is the same."""

    def __init__(self, spec: RunSpec, topology: Topology) -> None:
        self.spec = spec
        self.topology = topology

    def __hash__(self) -> int:
        return hash(self.spec.content_hash())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Point)
            and self.topology is other.topology
            and self.spec.content_hash() == other.spec.content_hash()
        )


@functools.lru_cache(maxsize=2)
def _planned(point: _Point) -> tuple[PlannedFlow, ...]:
    spec, topology = point.spec, point.topology
    flows = drawn_flows(spec, topology)
    sent = dict.fromkeys(topology.host_names, 0)
    received = dict.fromkeys(topology.host_names, 0)
    planned = []
    for number, (flow, transport) in enumerate(zip(flows, _transports(spec, flows), strict=True)):
        port, cport = FIRST_PORT + received[flow.dst] % _PORTS, FIRST_CPORT + sent[flow.src] % STRIDE
        received[flow.dst] += 1
        sent[flow.src] += 1
        local, remote = topology.nic_pairs(topology.index(flow.src), topology.index(flow.dst))[0]
        planned.append(
            PlannedFlow(
                number,
                flow.src,
                flow.dst,
                local.ip,
                remote.ip,
                port,
                cport,
                flow.size_bytes,
                flow.start_s,
                *transport,
                flow.after,
                flow.rate_mbps,
                flow.dscp,
            )
        )
    return tuple(planned)


def _transports(spec: RunSpec, flows: Iterable[Flow]) -> Iterator[tuple[int, str]]:
    """Yield each flow's number of subflows and its congestion control."""
    usual = spec.transport.subflows, in_force(spec.transport.cc, spec.transport.subflows)
    for flow in flows:
        if flow.rate_mbps:
            yield 0, NO_CC
        elif flow.plain:
            yield 1, BASELINE
        elif flow.subflows:
            yield flow.subflows, in_force(spec.transport.cc, flow.subflows)
        else:
            yield usual


def subflow_counts(spec: RunSpec, flows: Iterable[Flow]) -> list[int]:
    """Return each flow's number of subflows, 0 for flows of constant rate."""
    return [subflows for subflows, _ in _transports(spec, flows)]


def congestion_controls(spec: RunSpec, flows: Iterable[Flow]) -> frozenset[str]:
    """Return the congestion controls of these flows of the workload; flows of constant rate have none."""
    different = {(flow.rate_mbps > 0, flow.plain, flow.subflows): flow for flow in flows}
    return frozenset(cc for _, cc in _transports(spec, different.values())) - {NO_CC}


def drawn_flows(spec: RunSpec, topology: Topology) -> tuple[Flow, ...]:
    """Draw the workload's flows, once for all steps of a run. None where hosts do something else.

    Raises UsageError for a workload that does not suit the topology.
    """
    return _drawn(_Point(spec, topology))


@functools.lru_cache(maxsize=2)
def _drawn(point: _Point) -> tuple[Flow, ...]:
    spec, topology = point.spec, point.topology
    traffic = Traffic(spec.warmup_s + spec.seconds, topology.host_speed * spec.link.rate_mbps)
    workload = spec.workload
    return build(workload.matrix, topology, workload.params, sub_seed(spec.seed, "workload"), traffic)


def check_ports(flows: Iterable[PlannedFlow]) -> None:
    """Raise UsageError if a host would start more flows than it has local ports for."""
    if max(Counter(flow.src for flow in flows).values(), default=0) > MAX_FLOWS_A_HOST:
        raise UsageError(
            f"the workload starts more than {MAX_FLOWS_A_HOST} flows from one host, but a real host has "
            "ports for no more: choose a smaller topology, less time or load, or --engine simulator"
        )


def subflow_pairs(topology: Topology, flow: PlannedFlow) -> tuple[AddressPair, ...]:
    """Return the addresses and ports of each subflow as its sender sees them.

    Hosts with one NIC use one address pair for all subflows (ndiffports); with several NICs see
    `Topology.nic_pairs`.
    """
    pairs = topology.nic_pairs(topology.index(flow.src), topology.index(flow.dst))
    subflows = zip(range(flow.subflows), itertools.cycle(pairs))
    return tuple(
        AddressPair(local.ip, flow.cport + i * STRIDE, remote.ip, flow.port)
        for i, (local, remote) in subflows
    )
