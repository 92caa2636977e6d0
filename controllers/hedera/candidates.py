"""The paths that a scheduler may choose: all shortest ones between two NICs, in lexicographic order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hedera.demands import Rates, natural_demands
from controllers.routing import path_of_rank
from controllers.scheduler import FlowCount
from topos.topology import Nic, Topology


@dataclass(frozen=True, eq=False)
class Choices:
    """Paths between two switches: names of their nodes, and the links they pass, one row per path."""

    names: tuple[tuple[str, ...], ...]
    links: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def rows(self) -> list[list[int]]:
        """`links` as Python integers."""
        return [[int(link) for link in row] for row in self.links]


def check_steerable(topology: Topology) -> None:
    """Raise UsageError if hosts forward, because they route at the source."""
    if topology.hosts_forward:
        raise UsageError(f"{topology.kind}: its hosts forward, but a scheduler can steer switches only")


class Candidates:
    """Candidate paths of a multi-rooted tree, or of any network whose hosts do not forward.

    Link 2i leads from the `a` end of the topology's link i to its `b` end, link 2i + 1 back. Rates are
    multiples of a link of speed 1. Raises UsageError as `check_steerable` does.
    """

    def __init__(self, topology: Topology) -> None:
        check_steerable(topology)
        self._topology = topology
        self._tables = ecmp_groups(topology)
        self._position = {node: i for i, node in enumerate(self._tables.attach)}
        self._known: dict[tuple[int, int], Choices] = {}
        self._nic_number = {nic.ip: i for i, nic in enumerate(topology.nics)}
        self._nic_rates = np.array([float(topology.links[nic.link].speed) for nic in topology.nics])
        self.capacity: Rates = np.repeat([float(link.speed) for link in topology.links], 2)

    @property
    def most(self) -> int:
        """Largest number of paths between two switches: (k/2)^2 in a FatTree, its core switches."""
        counts = [
            self._tables.path_count(switch, target)
            for switch in self._tables.attach
            for target in range(len(self._tables.attach))
        ]
        return max(counts)

    def ends(self, flow: FlowCount) -> tuple[Nic, Nic]:
        topology = self._topology
        return topology.nic_by_ip(flow.flow.src), topology.nic_by_ip(flow.flow.dst)

    def of(self, flow: FlowCount) -> Choices:
        """Return the paths between a flow's first and last switch; one without links if these are equal."""
        source, receiver = self.ends(flow)
        pair = source.switch, receiver.switch
        if pair not in self._known:
            self._known[pair] = self._found(*pair)
        return self._known[pair]

    def nic_rate(self, flow: FlowCount) -> float:
        """Return the rate of the NIC by which the flow leaves."""
        return float(self._nic_rates[self._nic_number[flow.flow.src]])

    def demands(self, flows: Sequence[FlowCount]) -> list[float]:
        """Return each flow's natural demand among these flows."""
        sources = np.array([self._nic_number[each.flow.src] for each in flows], np.int64)
        receivers = np.array([self._nic_number[each.flow.dst] for each in flows], np.int64)
        found: list[float] = natural_demands(sources, receivers, self._nic_rates, self._nic_rates).tolist()
        return found

    def _found(self, source: int, receiver: int) -> Choices:
        target = self._position[receiver]
        count = self._tables.path_count(source, target)
        walks = [path_of_rank(self._tables, rank, source, target) for rank in range(count)]
        links = [[self._towards(a, b) for a, b in pairwise(walk)] for walk in walks]
        names = [tuple(self._topology.nodes[node].name for node in walk) for walk in walks]
        return Choices(tuple(names), np.array(links, np.int64).reshape(count, -1))

    def _towards(self, here: int, there: int) -> int:
        link = self._topology.link_between(here, there)
        return 2 * link + (self._topology.links[link].a != here)


def lead(flow: FlowCount, switches: tuple[str, ...]) -> tuple[str, ...]:
    """Return the whole path of a flow through these switches, from host to host."""
    return (flow.path[0], *switches, flow.path[-1])
