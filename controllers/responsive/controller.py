"""Monitors, and the controller that answers them: rates, demands, and paths for subflows.

A sender's monitor measures rates and asks for paths. The controller counts subflows on links, expects a
throughput for another one, and estimates demands when flows begin or end.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from common.errors import UsageError
from controllers.hashing import FiveTuple
from controllers.hedera import CLOSE, Candidates, Choices
from controllers.scheduler import FlowCount
from topos.topology import Topology

OLD_WEIGHT, NEW_WEIGHT = 0.2, 0.8
"""Weights of the moving average of a flow's rate."""


@dataclass(frozen=True)
class Settings:
    """`monitor_s` is t_m, `demand_gap` delta_DGT, `rate_variation` delta_RVT, `checks` R, `demand_change`
    delta_DDT and `max_subflows` M of the slides. With `one_per_tick` a monitor serves at most one flow per
    tick, as the slides print the loop. Each message takes `message_s` and is lost with probability
    `message_loss`. From `down_at_s` on the controller does not run for `down_for_s` (0: it always runs); then
    it starts again and has forgotten everything. With `down_monitors` above 0 monitors are down in that time
    instead, each with that probability. They keep their flows' paths in a file, and read it when they start
    again.

    Two settings are not in the slides. With `closes`, the controller closes subflows of a flow whose demand
    has fallen. With `links_s` above 0 it learns of a link that fails or recovers after that time, avoids it,
    and moves the subflows that use it."""

    monitor_s: float = 0.002
    demand_gap: float = 0.15
    rate_variation: float = 0.05
    checks: int = 3
    demand_change: float = 0.1
    max_subflows: int = 4
    message_s: float = 0.0001
    message_loss: float = 0.0
    one_per_tick: bool = False
    down_at_s: float = 0.0
    down_for_s: float = 0.0
    down_monitors: float = 0.0
    closes: bool = False
    links_s: float = 0.0


Row = Sequence[int]
"""The links of a path between a sender's and a receiver's switch."""


class SubflowRoutes:
    """The subflows of all connections, and the throughput that another subflow can expect on a path.

    Subflows of one connection on a link count as one aggregate, and aggregates share a link equally. The
    slides have two rules. Without another subflow of the connection on the path, a subflow can expect the
    smallest share of the path's links (rule 1). Where it joins others on a link, it can expect what they
    leave of the aggregate's share, at most (rule 2). The same formula gives both.
    """

    def __init__(self, capacity_mbps: Sequence[float]) -> None:
        """`capacity_mbps` holds the rate of every link."""
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


Path = tuple[str, ...]
"""The names of a path's nodes, host to host."""


@dataclass(frozen=True)
class Request:
    """A flow whose rate is `gap_mbps` below its demand, and the numbers of the subflows that it has."""

    flow: FiveTuple
    gap_mbps: float
    subflows: tuple[int, ...]


@dataclass
class Watched:
    """A flow at its monitor. `smoothed_mbps` is the moving average of its rate, `steady` the number of
    checks in a row in which the rate was close to it, `paths` those of its subflows, by their numbers."""

    octets: int
    read_s: float
    demand_mbps: float | None = None
    smoothed_mbps: float = 0.0
    steady: int = 0
    paths: dict[int, Path] = field(default_factory=dict)


class Monitor:
    """Flows of one sender, by the 5-tuple of their first subflow."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._flows: dict[FiveTuple, Watched] = {}

    @property
    def flows(self) -> Mapping[FiveTuple, Watched]:
        return self._flows

    def begin(self, flow: FiveTuple, octets: int, now_s: float) -> None:
        self._flows[flow] = Watched(octets, now_s)

    def end(self, flow: FiveTuple) -> None:
        self._flows.pop(flow, None)

    def restart(self, octets: Mapping[FiveTuple, int], now_s: float) -> None:
        """Begin to measure anew. Flows and the paths of their subflows are still known, demands are not."""
        for flow, watched in self._flows.items():
            fresh = Watched(octets.get(flow, watched.octets), now_s, paths=watched.paths)
            self._flows[flow] = fresh

    def set_demand(self, flow: FiveTuple, mbps: float) -> None:
        """Note the demand that the controller has sent; no effect after the flow's end."""
        if flow in self._flows:
            self._flows[flow].demand_mbps = mbps

    def set_subflow(self, flow: FiveTuple, number: int, path: Path | None) -> None:
        """Note a subflow's path; None: it was closed. This restarts the count of steady checks."""
        if flow not in self._flows:
            return
        self._flows[flow].paths.pop(number, None)
        if path is not None:
            self._flows[flow].paths[number] = path
        self._flows[flow].steady = 0

    def tick(self, octets: Mapping[FiveTuple, int], now_s: float) -> list[Request]:
        """Check every flow and return requests. `octets` has the bytes that each flow has sent."""
        asked = []
        for flow, watched in self._flows.items():
            if flow not in octets or now_s <= watched.read_s:
                continue
            self._measure(watched, octets[flow], now_s)
            if watched.steady < self._settings.checks or not self._lacks(watched):
                continue
            assert watched.demand_mbps is not None
            gap_mbps = watched.demand_mbps - watched.smoothed_mbps
            asked.append(Request(flow, gap_mbps, tuple(sorted(watched.paths))))
            watched.steady = 0
            if self._settings.one_per_tick:
                break
        return asked

    def _measure(self, watched: Watched, octets: int, now_s: float) -> None:
        rate_mbps = (octets - watched.octets) * 8e-6 / (now_s - watched.read_s)
        watched.octets, watched.read_s = octets, now_s
        watched.smoothed_mbps = OLD_WEIGHT * watched.smoothed_mbps + NEW_WEIGHT * rate_mbps
        variation = abs(rate_mbps - watched.smoothed_mbps)
        is_steady = variation < self._settings.rate_variation * watched.smoothed_mbps
        watched.steady = watched.steady + 1 if is_steady else 0

    def _lacks(self, watched: Watched) -> bool:
        if watched.demand_mbps is None:
            return False
        return watched.smoothed_mbps < (1 - self._settings.demand_gap) * watched.demand_mbps


@dataclass(frozen=True)
class Demand:
    """The demand of a flow, for the monitor at its sender."""

    flow: FiveTuple
    mbps: float


@dataclass(frozen=True)
class Grant:
    """A path, host to host, for subflow `number` of a flow; 0 is the subflow that it started with."""

    flow: FiveTuple
    number: int
    path: Path


@dataclass(frozen=True)
class Move:
    """Another path for a subflow that is open, because a link of its path has failed."""

    flow: FiveTuple
    number: int
    path: Path


@dataclass(frozen=True)
class Close:
    """An order to close a subflow that is no longer needed."""

    flow: FiveTuple
    number: int


@dataclass(frozen=True)
class Unknown:
    """The controller does not know this flow: it has started again since the flow began."""

    flow: FiveTuple


Order = Demand | Grant | Move | Close | Unknown


@dataclass
class MultipathConnection:
    """What the controller knows about a flow. `places` maps a subflow's number to the position of its path in
    `choices`. `closing` has the numbers of subflows that were ordered closed, until that is confirmed."""

    choices: Choices
    ends: tuple[str, str]
    limit_mbps: float
    sent_mbps: float | None = None
    places: dict[int, int] = field(default_factory=dict)
    closing: set[int] = field(default_factory=set)

    def path(self, number: int) -> tuple[str, ...]:
        return (self.ends[0], *self.choices.names[self.places[number]], self.ends[1])

    def row(self, number: int) -> Row:
        return self.choices.rows[self.places[number]]

    @property
    def free(self) -> int:
        """The smallest number that no subflow has."""
        return next(n for n in count() if n not in self.places and n not in self.closing)


class SubflowController:
    """Answers monitors. Equal paths are chosen at random. Raises UsageError if hosts forward packets."""

    def __init__(
        self,
        topology: Topology,
        rate_mbps: float,
        settings: Settings,
        seed: int,
        routing: str = "hashed",
    ) -> None:
        """`rate_mbps` is the rate of a link of speed 1; paths are those of `routing`."""
        self._topology = topology
        self._rate_mbps = rate_mbps
        self._settings = settings
        self._rng = random.Random(seed)
        self._candidates = Candidates(topology, routing)
        self._failed: frozenset[int] = frozenset()
        self.restart()
        if settings.max_subflows < 1:
            raise UsageError("the responsive controller needs at least one subflow per connection")

    def restart(self) -> None:
        """Forget all connections and their routes. Switches report failed links again at once."""
        self._routes = SubflowRoutes((self._candidates.capacity * self._rate_mbps).tolist())
        self._connections: dict[FiveTuple, MultipathConnection] = {}

    @property
    def connections(self) -> Mapping[FiveTuple, MultipathConnection]:
        return self._connections

    @property
    def routes(self) -> SubflowRoutes:
        return self._routes

    def begin(self, flow: FiveTuple, paths: Sequence[tuple[int, Path]] = ()) -> list[Order]:
        """Assign a path to a flow that has begun, and return the demands that this changes.

        A flow that is known already gets the same orders again: the first ones were lost. A flow that has
        `paths` from before the controller's restart keeps them.
        """
        known = self._connections.get(flow)
        if known is not None:
            if known.sent_mbps is None:
                raise AssertionError(f"{flow}: known without a demand")
            self._take_over(flow, paths)
            return [Demand(flow, known.sent_mbps), *self._granted(flow, known.places)]
        known = self._connections[flow] = self._found(flow)
        if paths:
            self._take_over(flow, paths)
            return [*self._moves(flow), *self._demands()]
        self._extend(flow)
        return [*self._granted(flow, known.places), *self._demands()]

    def end(self, flow: FiveTuple) -> list[Order]:
        """Forget a flow. The answer has a demand of 0 for it, and other flows' new demands."""
        known = self._connections.pop(flow, None)
        if known is None:
            return [Demand(flow, 0.0)]
        for number in known.places:
            self._routes.remove(flow, known.row(number))
        return [Demand(flow, 0.0), *self._demands()]

    def request(self, asked: Request) -> list[Order]:
        """Give a flow subflows until they can be expected to cover its gap, up to M in all.

        If the monitor lacks subflows of earlier answers, it gets those again and no others. If the flow is
        unknown, or has more subflows than are known, the answer asks the monitor about it. A flow with a
        subflow that is about to be closed gets nothing yet.
        """
        known = self._connections.get(asked.flow)
        if known is None or set(asked.subflows) - known.places.keys() - known.closing:
            return [Unknown(asked.flow)]
        if missing := known.places.keys() - set(asked.subflows):
            return self._granted(asked.flow, missing)
        if known.closing:
            return []
        gap_mbps, before = asked.gap_mbps, set(known.places)
        while len(known.places) < self._settings.max_subflows:
            expected = self._extend(asked.flow)
            if expected <= 0 or expected > gap_mbps:
                break
            gap_mbps -= expected
        return self._granted(asked.flow, known.places.keys() - before)

    def closed(self, flow: FiveTuple, number: int) -> None:
        """Note that a monitor has closed a subflow, whose number is free again."""
        known = self._connections.get(flow)
        if known is None:
            return
        known.closing.discard(number)
        if number in known.places:  # the order is from before a restart
            self._routes.remove(flow, known.row(number))
            del known.places[number]

    def set_failed(self, links: frozenset[int]) -> list[Order]:
        """Note which links have failed, as `Candidates` numbers them, and move the subflows that use them.

        A subflow stays if all its paths have failed.
        """
        self._failed = links
        return [move for flow in self._connections for move in self._moves(flow)]

    def _moves(self, flow: FiveTuple) -> list[Order]:
        known = self._connections[flow]
        return [
            Move(flow, number, known.path(number))
            for number in list(known.places)
            if self._failed.intersection(known.row(number)) and self._move(flow, number)
        ]

    def _move(self, flow: FiveTuple, number: int) -> bool:
        """Give a subflow the best path that has not failed; False if there is none."""
        known = self._connections[flow]
        if all(self._failed.intersection(row) for row in known.choices.rows):
            return False
        self._routes.remove(flow, known.row(number))
        known.places[number] = self._best(known, flow)[0]
        self._routes.add(flow, known.row(number))
        return True

    def _take_over(self, flow: FiveTuple, paths: Sequence[tuple[int, Path]]) -> None:
        """Note the subflows that a flow has. Raises ValueError for a path that is not one of its own."""
        known = self._connections[flow]
        for number, path in paths:
            if number not in known.places and number not in known.closing:
                known.places[number] = known.choices.names.index(tuple(path[1:-1]))
                self._routes.add(flow, known.row(number))

    def _extend(self, flow: FiveTuple) -> float:
        """Add a subflow on the path with the largest expected throughput, and return that throughput.

        If no path promises any, add no subflow and return 0. Only a flow's first subflow is added anyway.
        """
        known = self._connections[flow]
        if not known.choices.rows[0] and known.places:
            return 0.0  # there is one path, and it has a subflow
        place, best = self._best(known, flow)
        if best <= self._tolerance and known.places:
            return 0.0
        number = known.free
        known.places[number] = place
        self._routes.add(flow, known.row(number))
        return best

    def _best(self, known: MultipathConnection, flow: FiveTuple) -> tuple[int, float]:
        """Return the path with the largest expected throughput, and that throughput; 0 for a failed path."""
        expected = [
            0.0 if self._failed.intersection(row) else self._routes.expected_mbps(flow, row, known.limit_mbps)
            for row in known.choices.rows
        ]
        best = max(expected)
        close = [i for i, each in enumerate(expected) if each >= best - self._tolerance]
        usable = [i for i in close if not self._failed.intersection(known.choices.rows[i])]
        return self._rng.choice(usable or close), best

    @property
    def _tolerance(self) -> float:
        return CLOSE * self._rate_mbps

    def _shrink(self, flow: FiveTuple) -> list[Order]:
        """Close subflows as long as the others can be expected to cover the demand.

        The first subflow stays. Of the others, close the one without which the most throughput is left.
        """
        known = self._connections[flow]
        orders: list[Order] = []
        while others := [number for number in known.places if number != 0]:
            left = {number: self._without(flow, number) for number in others}
            number = max(others, key=lambda each: (left[each], each))
            if left[number] < (known.sent_mbps or 0.0) - self._tolerance:
                break
            self._routes.remove(flow, known.row(number))
            del known.places[number]
            known.closing.add(number)
            orders.append(Close(flow, number))
        return orders

    def _without(self, flow: FiveTuple, number: int) -> float:
        """Return the throughput that a flow can expect from its other subflows."""
        known = self._connections[flow]
        row = known.row(number)
        self._routes.remove(flow, row)
        rows = [known.row(each) for each in known.places if each != number]
        total = self._routes.total_mbps(flow, rows, known.limit_mbps)
        self._routes.add(flow, row)
        return total

    def _demands(self) -> list[Order]:
        """Estimate all demands, and return those of new flows and those that have changed enough."""
        flows = list(self._connections)
        if not flows:
            return []
        orders: list[Order] = []
        found = self._candidates.demands([FlowCount(flow, 0, ()) for flow in flows])
        for flow, demand in zip(flows, found, strict=True):
            known, mbps = self._connections[flow], demand * self._rate_mbps
            sent = known.sent_mbps
            if sent is None or abs(mbps - sent) > self._settings.demand_change * sent:
                known.sent_mbps = mbps
                orders.append(Demand(flow, mbps))
                if self._settings.closes and sent is not None and mbps < sent:
                    orders += self._shrink(flow)
        return orders

    def _granted(self, flow: FiveTuple, numbers: Iterable[int]) -> list[Order]:
        known = self._connections[flow]
        return [Grant(flow, number, known.path(number)) for number in sorted(numbers)]

    def _found(self, flow: FiveTuple) -> MultipathConnection:
        count = FlowCount(flow, 0, ())
        source, receiver = self._candidates.ends(count)
        names = self._topology.nodes[source.host].name, self._topology.nodes[receiver.host].name
        return MultipathConnection(
            self._candidates.of(count), names, self._candidates.nic_rate(count) * self._rate_mbps
        )
