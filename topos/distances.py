"""Distances between nodes, in links."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Neighbours = tuple[int, ...]


class Distances:
    """Distances between pairs of nodes; paths lead through forwarders only.

    Nodes with the same neighbours have the same distances, so that hosts of one switch are searched for once.
    """

    def __init__(self, adjacency: Sequence[Neighbours], forwarders: Collection[int]) -> None:
        self._adjacency = adjacency
        self._forwarders = frozenset(forwarders)
        self._known: dict[tuple[Neighbours, Neighbours], int] = {}

    def between(self, start: int, end: int) -> int:
        """Return the number of links on the shortest paths. Without a path the number has no meaning."""
        if start == end or end in self._adjacency[start]:
            return int(start != end)
        places = self._adjacency[start], self._adjacency[end]
        if places not in self._known:
            self._known[places] = self._search(start, end)
        return self._known[places]

    def _search(self, start: int, end: int) -> int:
        """Search breadth-first from both ends."""
        growing, waiting = {start}, {end}
        reached, reached_by_other = {start}, {end}
        links = 0
        while growing and growing.isdisjoint(waiting):
            if len(growing) > len(waiting):
                growing, waiting = waiting, growing
                reached, reached_by_other = reached_by_other, reached
            near = {there for here in growing for there in self._adjacency[here]}
            growing = (near & self._forwarders | near & {start, end}) - reached
            reached |= growing
            links += 1
        return links
