"""Paths between switches: ECMP groups (for every switch and every destination switch, the next hops on
shortest paths), and lists of other paths.

Hosts are reached through the switch they attach to, so a table has one column per attachment switch instead
of per host. Groups are shared, because switches with the same neighbours and distances have equal groups
(k=32: 655 360 entries, 1104 groups). If hosts forward, they have rows like switches, and each host is its own
attachment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topos.topology import Topology

Counts = npt.NDArray[np.int64]
_FACTOR = 0x5851F42D4C957F2D


class NextHop(NamedTuple):
    """A forwarding neighbour, and the number of shortest paths from it to the destination's attachment, or
    its weight (`weighted`)."""

    node: int
    paths: int


class WeightedPath(NamedTuple):
    """Forwarding nodes from one attachment to another. Its share of flows is in proportion to the weight."""

    weight: int
    nodes: tuple[int, ...]


class PathLists:
    """The paths between any two attachments, by a function of their nodes, which is called once for each."""

    def __init__(self, find: Callable[[int, int], Sequence[WeightedPath]]) -> None:
        self._find = find
        self._known: dict[tuple[int, int], tuple[WeightedPath, ...]] = {}

    def between(self, src: int, dst: int) -> tuple[WeightedPath, ...]:
        """Return the paths from node `src` to node `dst`; empty if none joins them."""
        if (src, dst) not in self._known:
            self._known[src, dst] = tuple(self._find(src, dst))
        return self._known[src, dst]


Group = tuple[NextHop, ...]


@dataclass(frozen=True, eq=False)
class EcmpTables:
    """ECMP tables of a topology.

    `attach`: indices of the switches with hosts, ascending (of the hosts, if they forward). `groups`:
    distinct groups, with next hops ascending by node. `rows`: the row in `fib` of each node, -1 for hosts
    that do not forward. `fib[row, position in attach]`: index into `groups`, or -1 for the node itself and
    for unreachable nodes. Both are int32 and read-only. `lists`, if any, replace the shortest paths.
    """

    attach: tuple[int, ...]
    groups: tuple[Group, ...]
    rows: npt.NDArray[np.int32]
    fib: npt.NDArray[np.int32]
    lists: PathLists | None = None

    def group(self, node: int, attach_pos: int) -> Group:
        """Return the next hops of `node` towards switch `attach[attach_pos]`; empty if `fib` has -1."""
        row = self.rows[node]
        number = self.fib[row, attach_pos] if row >= 0 else -1
        return self.groups[number] if number >= 0 else ()

    def path_count(self, node: int, attach_pos: int) -> int:
        """Return the number of paths from `node` to `attach[attach_pos]`, of listed ones the sum of weights:
        1 to itself, 0 for none."""
        if node == self.attach[attach_pos]:
            return 1
        if self.lists is not None:
            return sum(path.weight for path in self.lists.between(node, self.attach[attach_pos]))
        return sum(hop.paths for hop in self.group(node, attach_pos))


def ecmp_groups(topology: Topology) -> EcmpTables:
    """Return the ECMP tables of all forwarding nodes, over shortest paths between them.

    Cost: links x attachment switches, in numpy; about 0.02 s of CPU for k=16, 0.2 s for k=32, 1 s for k=48.
    """
    forwarders = topology.forwarders
    row_of = {node: row for row, node in enumerate(forwarders)}
    neighbours = [[row_of[n] for n in topology.adjacency[node] if n in row_of] for node in forwarders]
    attach = tuple(sorted({topology.attachment(nic) for nic in topology.nics}))
    distance, counts = _count_paths(neighbours, [row_of[node] for node in attach])
    rows = np.full(len(topology.nodes), -1, dtype=np.int32)
    rows[list(forwarders)] = np.arange(len(forwarders))
    fib = np.empty((len(forwarders), len(attach)), dtype=np.int32)
    number_of: dict[Group, int] = {}
    for row, near in enumerate(neighbours):
        closer = _next_hop_counts(near, distance, counts, row)
        fib[row] = _number_columns(closer, [forwarders[n] for n in near], number_of)
    rows.setflags(write=False)
    fib.setflags(write=False)
    return EcmpTables(attach, tuple(number_of), rows, fib)


def leftmost(tables: EcmpTables) -> EcmpTables:
    """Return the tables with only the first next hop of every group: one path between any two switches."""
    groups = tuple((NextHop(group[0].node, 1),) for group in tables.groups)
    return replace(tables, groups=groups)


def rightmost(tables: EcmpTables) -> EcmpTables:
    """Return the tables with only the last next hop of every group: one path between any two nodes."""
    groups = tuple((NextHop(group[-1].node, 1),) for group in tables.groups)
    return replace(tables, groups=groups)


def weighted(topology: Topology, tables: EcmpTables) -> EcmpTables:
    """Return the tables with weights in place of numbers of paths: what each next hop can carry to the
    destination, which is the least of the link to it and of its own next hops together.

    Source: Zhou et al., WCMP, EuroSys 2014, section 3. Weights are whole numbers in this proportion; rates
    that are no whole multiples of the run's link rate count in thousandths of it.
    """
    number_of: dict[Group, int] = {}
    fib = np.full(tables.fib.shape, -1, np.int32)
    speed = {link.ends: link.speed for link in topology.links}
    speed |= {(b, a): rate for (a, b), rate in speed.items()}
    for target, attachment in enumerate(tables.attach):
        carries = {attachment: inf}

        def capacity(node: int, column: int = target, known: dict[int, float] = carries) -> float:
            if node not in known:
                hops = tables.group(node, column)
                known[node] = sum(min(speed[node, hop.node], capacity(hop.node)) for hop in hops)
            return known[node]

        for node in np.flatnonzero(tables.rows >= 0).tolist():
            if group := tables.group(node, target):
                rates = [min(speed[node, hop.node], capacity(hop.node)) for hop in group]
                hops = tuple(map(NextHop, (hop.node for hop in group), _whole(rates)))
                fib[tables.rows[node], target] = number_of.setdefault(hops, len(number_of))
    fib.setflags(write=False)
    return replace(tables, groups=tuple(number_of), fib=fib)


def _whole(rates: Sequence[float]) -> list[int]:
    """Return whole numbers in the proportion of these rates."""
    unit = 1 if all(rate == int(rate) for rate in rates) else 1000
    numbers = [max(1, round(rate * unit)) for rate in rates]
    common = gcd(*numbers)
    return [number // common for number in numbers]


def _count_paths(
    neighbours: Sequence[Sequence[int]], targets: Sequence[int]
) -> tuple[npt.NDArray[np.int16], Counts]:
    """Search breadth-first from all targets at once.

    Return the hop distance (-1 if unreachable) and the number of shortest paths from every forwarding node to
    every target, both of shape (nodes, targets).
    """
    shape = (len(neighbours), len(targets))
    distance = np.full(shape, -1, dtype=np.int16)
    counts: Counts = np.zeros(shape, dtype=np.int64)
    columns = np.arange(len(targets))
    distance[targets, columns] = 0
    counts[targets, columns] = 1
    frontier = counts.copy()
    level = 0
    while frontier.any():
        level += 1
        reached = _sums_of(neighbours, frontier)
        reached[distance >= 0] = 0
        distance[reached > 0] = level
        counts += reached
        frontier = reached
    return distance, counts


def _sums_of(neighbours: Sequence[Sequence[int]], frontier: Counts) -> Counts:
    """Return for every row the sum of its neighbours' rows."""
    active = set(np.flatnonzero(frontier.any(axis=1)).tolist())
    sums = np.zeros_like(frontier)
    for row, near in enumerate(neighbours):
        for node in active.intersection(near):
            sums[row] += frontier[node]
    return sums


def _next_hop_counts(
    near: Sequence[int], distance: npt.NDArray[np.int16], counts: Counts, row: int
) -> Counts:
    """Return path counts of neighbours that are one hop closer, 0 for others: shape (targets, neighbours)."""
    rows = list(near)
    closer = distance[rows] == distance[row] - 1
    closer &= distance[rows] >= 0
    return np.ascontiguousarray(np.where(closer, counts[rows], 0).T)


def _number_columns(
    closer: Counts, names: Sequence[int], number_of: dict[Group, int]
) -> npt.NDArray[np.int32]:
    """Return the group number of each target, -1 without next hops; new groups get the next numbers."""
    first, kind = _distinct_rows(closer)
    numbers = np.empty(len(first), np.int32)
    for i in np.argsort(first):
        pairs = zip(names, closer[first[i]].tolist(), strict=True)
        group = tuple(NextHop(node, paths) for node, paths in pairs if paths)
        numbers[i] = number_of.setdefault(group, len(number_of)) if group else -1
    return numbers[kind]


def _distinct_rows(rows: Counts) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return where each distinct row is first, and for every row which of these it equals.

    Sums weighted by powers of _FACTOR, modulo 2^64, are sorted in place of whole rows.
    """
    weights = np.cumprod(np.full(rows.shape[1], _FACTOR))
    _, first, kind = np.unique(rows @ weights, return_index=True, return_inverse=True)
    if not (rows[first[kind]] == rows).all():  # two rows have one digest
        _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, kind.ravel()
