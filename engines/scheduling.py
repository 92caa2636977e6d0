"""`controllers.scheduler.Network` on the fabric: the network as a flow scheduler sees it.

It works between real hosts and in the simulator; `controllers/openflow/control.py` is for OpenFlow switches.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.rules import Routes
from controllers.scheduler import FlowCount, PortCount
from engines.core_setup import NEVER_PS
from fabric._core import Simulation
from fabric.readings import SimulatedCounters
from model.flows import PlannedFlow, subflow_pairs
from model.network_plan import port_names, ports_along
from model.spec import RunSpec, sub_seed
from topos.topology import Topology

FiveTupleNumbers = tuple[int, int, int, int, int]


class Steerable(Protocol):
    """The part of a core used here: a data plane's or a `VirtualFabric`."""

    def set_path(self, flow: FiveTupleNumbers, ports: Sequence[int]) -> None: ...
    def clear_path(self, flow: FiveTupleNumbers) -> None: ...


class FabricNetwork:
    """A Network over real hosts. `octets` returns each flow and the bytes its host has sent; `counters` reads
    the core's ports. Raises UsageError for a routing policy under which flows have no path."""

    def __init__(
        self,
        topology: Topology,
        routes: Routes,
        core: Steerable,
        octets: Callable[[], Mapping[FiveTuple, int]],
        counters: Callable[[], SimulatedCounters],
    ) -> None:
        self._topology = topology
        self._routes = routes
        self._core = core
        self._octets = octets
        self._counters = counters
        self._chosen: dict[FiveTuple, tuple[int, ...]] = {}
        self._hashed: dict[FiveTuple, tuple[int, ...]] = {}

    def flows(self) -> Sequence[FlowCount]:
        return [
            FlowCount(flow, octets, _names(self._topology, self._chosen.get(flow) or self._usual(flow)))
            for flow, octets in self._octets().items()
        ]

    def _usual(self, flow: FiveTuple) -> tuple[int, ...]:
        if flow not in self._hashed:
            self._hashed[flow] = self._routes.path(flow)
        return self._hashed[flow]

    def ports(self) -> Sequence[PortCount]:
        return port_counts(self._topology, self._counters())

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        nodes = _checked(self._topology, self._routes, flow, path)
        self._core.set_path(numbers(flow), ports_along(self._topology, nodes))
        self._chosen[flow] = nodes

    def clear_path(self, flow: FiveTuple) -> None:
        self._core.clear_path(numbers(flow))
        self._chosen.pop(flow, None)


class SimulatedNetwork:
    """A Network over a simulation: running subflows are its flows, with the packets known to have arrived.

    The acknowledgements of a subflow are a flow too; its path can be set, but it is not listed.
    """

    def __init__(
        self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], simulation: Simulation
    ) -> None:
        """`simulation` carries `flows` in this order. Raises UsageError as `controllers.rules.Routes`."""
        self._topology = topology
        self._routes = Routes(topology, spec.routing, sub_seed(spec.seed, "routing"))
        self._simulation = simulation
        self._payload_bytes = spec.stack.payload_bytes
        self._usual: dict[FiveTuple, list[int]] = {}
        self._paths: dict[FiveTuple, tuple[str, ...]] = {}
        self._flow_of = np.repeat(np.arange(len(flows)), [flow.subflows for flow in flows])
        pairs = [pair for flow in flows for pair in subflow_pairs(topology, flow)]
        self._there = [FiveTuple(p.laddr, p.raddr, PROTO_TCP, p.lport, p.rport) for p in pairs]
        back = [FiveTuple(p.raddr, p.laddr, PROTO_TCP, p.rport, p.lport) for p in pairs]
        self._number = {
            flow: (i, way) for way, row in enumerate((self._there, back)) for i, flow in enumerate(row)
        }

    def flows(self) -> Sequence[FlowCount]:
        acked = self._simulation.subflows()["acked_pkts"]
        return [
            FlowCount(self._there[i], int(acked[i]) * self._payload_bytes, self._path_of(i))
            for i in self._running()
        ]

    def running(self) -> frozenset[FiveTuple]:
        """Return the flows that `flows` would list."""
        return frozenset(self._there[i] for i in self._running())

    def _running(self) -> list[int]:
        """Return the numbers of running subflows."""
        seen = self._simulation.flows()
        runs = (seen["started_ps"] < NEVER_PS) & (seen["completed_ps"] == NEVER_PS)
        found: list[int] = np.flatnonzero(runs[self._flow_of]).tolist()
        return found

    def ports(self) -> Sequence[PortCount]:
        return port_counts(self._topology, self._simulation.ports())

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        nodes = _checked(self._topology, self._routes, flow, path)
        subflow, way = self._number[flow]
        self._usual.setdefault(flow, self._both(subflow)[way])
        self._set(flow, ports_along(self._topology, nodes))

    def clear_path(self, flow: FiveTuple) -> None:
        if flow in self._usual:
            self._set(flow, self._usual.pop(flow))

    def _set(self, flow: FiveTuple, ports: list[int]) -> None:
        subflow, way = self._number[flow]
        both = self._both(subflow)
        both[way] = ports
        self._paths.pop(flow, None)
        self._simulation.set_path(subflow, *both)

    def _both(self, subflow: int) -> list[list[int]]:
        return [self._simulation.path(subflow), self._simulation.back_path(subflow)]

    def _path_of(self, subflow: int) -> tuple[str, ...]:
        flow = self._there[subflow]
        if flow not in self._paths:
            self._paths[flow] = self._path(self._simulation.path(subflow))
        return self._paths[flow]

    def _path(self, ports: Sequence[int]) -> tuple[str, ...]:
        links = [self._topology.links[port // 2] for port in ports]
        ends = [link.ends[::-1] if port % 2 else link.ends for link, port in zip(links, ports, strict=True)]
        assert all(left[1] == right[0] for left, right in pairwise(ends))
        return _names(self._topology, (ends[0][0], *(there for _, there in ends)))


def port_counts(topology: Topology, counters: SimulatedCounters) -> list[PortCount]:
    """Return every port's counters with the names of its two ends."""
    columns = (counters["tx_bytes"], counters["tx_packets"], counters["drops"])
    rows = zip(port_names(topology), *(column.tolist() for column in columns), strict=True)
    return [PortCount(node, peer, *counts) for (node, peer, _), *counts in rows]


def numbers(flow: FiveTuple) -> FiveTupleNumbers:
    """Return the 5-tuple in the core's form."""
    src, dst = (int(ipaddress.IPv4Address(ip)) for ip in (flow.src, flow.dst))
    return src, dst, flow.proto, flow.sport, flow.dport


def _checked(topology: Topology, routes: Routes, flow: FiveTuple, path: Sequence[str]) -> tuple[int, ...]:
    nodes = tuple(topology.index(name) for name in path)
    routes.check(flow, nodes)
    return nodes


def _names(topology: Topology, nodes: Sequence[int]) -> tuple[str, ...]:
    return tuple(topology.nodes[node].name for node in nodes)
