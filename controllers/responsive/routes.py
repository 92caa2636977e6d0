"""Subflows on links, and the throughput that another subflow of a connection can expect on a path.

Subflows of one connection on a link count as one aggregate, and aggregates share a link equally. The slides
have two rules. Without another subflow of the connection on the path, a subflow can expect the smallest share
of the path's links (rule 1). Where it joins others on a link, it can expect what they leave of the
aggregate's share, at most (rule 2). The same formula gives both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from controllers.hashing import FiveTuple

Row = Sequence[int]
"""The links of a path between a sender's and a receiver's switch."""


class Routes:
    """The subflows of all connections. `capacity_mbps` holds the rate of every link."""

    def __init__(self, capacity_mbps: Sequence[float]) -> None:
        self._capacity = list(capacity_mbps)
        self._on_link: dict[int, dict[FiveTuple, list[Row]]] = defaultdict(dict)

    def add(self, flow: FiveTuple, row: Row) -> None:
        for link in row:
            self._on_link[link].setdefault(flow, []).append(row)

    def remove(self, flow: FiveTuple, row: Row) -> None:
        """Remove one subflow that `add` has added with this row."""
        for link in row:
            rows = self._on_link[link][flow]
            rows.remove(row)
            if not rows:
                del self._on_link[link][flow]

    def aggregates(self, link: int) -> int:
        """Return the number of connections with a subflow on the link."""
        return len(self._on_link[link])

    def expected_mbps(self, flow: FiveTuple, row: Row, limit_mbps: float) -> float:
        """Return the throughput that one more subflow of `flow` can expect on the path, never below 0.

        `limit_mbps` is what its host can send, which matters where the path has no link.
        """
        found = limit_mbps
        for link in row:
            share = self._share(flow, link)
            others = self._on_link[link].get(flow, ())
            taken = sum(min(self._share(flow, each) for each in other) for other in others)
            found = min(found, max(0.0, share - taken))
        return found

    def total_mbps(self, flow: FiveTuple, rows: Sequence[Row], limit_mbps: float) -> float:
        """Return the throughput that a flow can expect from its subflows on these paths together. It is the
        sum of `expected_mbps` over subflows that are added one by one, not necessarily in the best order."""
        found, taken = 0.0, dict[int, float]()
        for row in rows:
            shares = [self._share(flow, link) - taken.get(link, 0.0) for link in row]
            more = max(0.0, min(shares, default=limit_mbps))
            found += more
            for link in row:
                taken[link] = taken.get(link, 0.0) + more
        return min(found, limit_mbps)

    def _share(self, flow: FiveTuple, link: int) -> float:
        """Return the flow's share of a link on which it has, or gets, a subflow."""
        present = self._on_link[link]
        return self._capacity[link] / (len(present) + (flow not in present))
