"""ECMP groups: for every switch and every destination switch, the next hops on shortest paths.

Hosts are reached through the switch they attach to, so a table has a column an attachment switch, not
a host; and the groups themselves are shared, because switches alike in neighbours and distances have equal
ones (k=32: 655 360 entries, 1104 groups). Where hosts forward they have rows as switches have, and each is
its own attachment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topos.topology import Topology

Counts = npt.NDArray[np.int64]


class NextHop(NamedTuple):
    """A neighbour that forwards and the number of shortest paths from it to the destination's attachment."""

    node: int
    paths: int


Group = tuple[NextHop, ...]


@dataclass(frozen=True, eq=False)
class EcmpTables:
    """`attach`: indices of the switches that have hosts (of the hosts, where they forward), ascending.
    `groups`: distinct groups, next hops ascending by node. `fib[node, position in attach]`: index into
    `groups`, or -1 for the node itself, an unreachable one, and in the row of a host that does not forward.
    Shape (nodes, attach), int32, read-only."""

    attach: tuple[int, ...]
    groups: tuple[Group, ...]
    fib: npt.NDArray[np.int32]

    def group(self, node: int, attach_pos: int) -> Group:
        """Next hops of `node` towards switch `attach[attach_pos]`; empty where `fib` has -1."""
        number = int(self.fib[node, attach_pos])
        return self.groups[number] if number >= 0 else ()

    def path_count(self, node: int, attach_pos: int) -> int:
        """Shortest paths from switch `node` to `attach[attach_pos]`: 1 to itself, 0 if unreachable."""
        if node == self.attach[attach_pos]:
            return 1
        return sum(hop.paths for hop in self.group(node, attach_pos))


def ecmp_groups(topology: Topology) -> EcmpTables:
    """The ECMP tables of all that forward, over shortest paths between them.

    Cost: links x attachment switches, in numpy; k=16 takes about 0.05 s, k=32 about 0.6 s.
    """
    forwarders = topology.forwarders
    row_of = {node: row for row, node in enumerate(forwarders)}
    neighbours = [[row_of[n] for n in topology.adjacency[node] if n in row_of] for node in forwarders]
    attach = tuple(sorted({topology.attachment(nic) for nic in topology.nics}))
    distance, counts = _count_paths(neighbours, [row_of[node] for node in attach])
    fib = np.full((len(topology.nodes), len(attach)), -1, dtype=np.int32)
    number_of: dict[Group, int] = {}
    for row, node in enumerate(forwarders):
        closer = _next_hop_counts(neighbours[row], distance, counts, row)
        names = [forwarders[n] for n in neighbours[row]]
        fib[node] = _number_columns(closer, names, number_of)
    fib.setflags(write=False)
    return EcmpTables(attach, tuple(number_of), fib)


def leftmost(tables: EcmpTables) -> EcmpTables:
    """The tables with the first next hop of every group alone: one path between any two switches."""
    groups = tuple((NextHop(group[0].node, 1),) for group in tables.groups)
    return EcmpTables(tables.attach, groups, tables.fib)


def _count_paths(neighbours: Sequence[Sequence[int]], targets: Sequence[int]) -> tuple[Counts, Counts]:
    """Breadth-first search from all targets at once: hop distance (-1 unreachable) and number of shortest
    paths of every node that forwards to every target, both of shape (nodes, targets)."""
    shape = (len(neighbours), len(targets))
    distance: Counts = np.full(shape, -1, dtype=np.int64)
    counts: Counts = np.zeros(shape, dtype=np.int64)
    columns = np.arange(len(targets))
    distance[targets, columns] = 0
    counts[targets, columns] = 1
    frontier = counts.copy()
    level = 0
    while frontier.any():
        level += 1
        reached = np.stack([frontier[list(near)].sum(axis=0) for near in neighbours])
        reached[distance >= 0] = 0
        distance[reached > 0] = level
        counts += reached
        frontier = reached
    return distance, counts


def _next_hop_counts(near: Sequence[int], distance: Counts, counts: Counts, row: int) -> Counts:
    """Path counts of the neighbours one hop closer, 0 for the others: shape (targets, neighbours)."""
    rows = list(near)
    closer = distance[rows] == distance[row] - 1
    closer &= distance[rows] >= 0
    return np.ascontiguousarray(np.where(closer, counts[rows], 0).T)


def _number_columns(closer: Counts, names: Sequence[int], number_of: dict[Group, int]) -> list[int]:
    """The group number of each target, numbering new groups in order of appearance; -1 for no next hop."""
    local: dict[bytes, int] = {}
    numbers = []
    for target in closer:
        key = target.tobytes()
        if key not in local:
            pairs = zip(names, target.tolist(), strict=True)
            group = tuple(NextHop(node, paths) for node, paths in pairs if paths)
            local[key] = number_of.setdefault(group, len(number_of)) if group else -1
        numbers.append(local[key])
    return numbers
