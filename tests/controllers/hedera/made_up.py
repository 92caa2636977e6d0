"""A made-up network that has only flows and their paths, for schedulers to steer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import topos
from controllers.hashing import FiveTuple
from controllers.rules import Routes
from controllers.scheduler import FlowCount, PortCount
from topos.topology import Topology


class MadeUpNetwork:
    """Flows between hosts (by position), each on its hashed path until another is set. `octets` counts the
    bytes that each has sent."""

    def __init__(self, topology: Topology, pairs: Sequence[tuple[int, int]], seed: int = 1) -> None:
        self.topology = topology
        self.routes = Routes(topology, "hashed", seed)
        self.moves = 0
        self.octets: dict[FiveTuple, int] = {}
        self._paths: dict[FiveTuple, tuple[str, ...]] = {}
        for number, pair in enumerate(pairs):
            self.begin(*pair, sport=1000 + number)

    def begin(self, src: int, dst: int, sport: int) -> FiveTuple:
        ips = [self.topology.nics_of(self.topology.hosts[end])[0].ip for end in (src, dst)]
        flow = FiveTuple(ips[0], ips[1], 6, sport, 5001)
        self.octets[flow] = 0
        self._paths[flow] = tuple(self.topology.nodes[node].name for node in self.routes.path(flow))
        return flow

    def end(self, flow: FiveTuple) -> None:
        del self.octets[flow], self._paths[flow]

    def flows(self) -> Sequence[FlowCount]:
        return [FlowCount(flow, octets, self._paths[flow]) for flow, octets in self.octets.items()]

    def ports(self) -> Sequence[PortCount]:
        return []

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self.routes.check(flow, [self.topology.index(name) for name in path])
        self._paths[flow] = tuple(path)
        self.moves += 1

    def clear_path(self, flow: FiveTuple) -> None:
        raise AssertionError(f"{flow}: no scheduler here clears paths")

    def path(self, flow: FiveTuple) -> tuple[str, ...]:
        return self._paths[flow]

    def most_on_a_link(self) -> int:
        """Return the largest number of flows on one link between switches."""
        hosts = {self.topology.nodes[host].name for host in self.topology.hosts}
        hops = (hop for path in self._paths.values() for hop in pairwise(path))
        return max(Counter(hop for hop in hops if not hosts.intersection(hop)).values(), default=0)


def fat_tree(k: int) -> Topology:
    return topos.build("fat_tree", {"k": k})


def permutation(hosts: int, seed: int) -> list[tuple[int, int]]:
    """Return random pairs in which every host sends to one other host and receives from one."""
    order = list(range(hosts))
    random.Random(seed).shuffle(order)
    return list(zip(order, [*order[1:], order[0]], strict=True))
