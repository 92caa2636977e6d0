"""The controller: it estimates demands when flows begin or end, and chooses paths for subflows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from common.errors import UsageError
from controllers.hashing import FiveTuple
from controllers.hedera.candidates import Candidates, Choices
from controllers.hedera.demands import CLOSE
from controllers.responsive.monitor import Path, Request
from controllers.responsive.routes import Routes
from controllers.responsive.settings import Settings
from controllers.scheduler import FlowCount
from topos.topology import Topology


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
class Unknown:
    """The controller does not know this flow: it has started again since the flow began."""

    flow: FiveTuple


Order = Demand | Grant | Unknown


@dataclass
class Connection:
    """What the controller knows about a flow. `places` are its subflows' paths, by position."""

    choices: Choices
    ends: tuple[str, str]
    limit_mbps: float
    sent_mbps: float | None = None
    places: list[int] = field(default_factory=list)

    def path(self, number: int) -> tuple[str, ...]:
        return (self.ends[0], *self.choices.names[self.places[number]], self.ends[1])


class Controller:
    """Answers monitors. Equal paths are chosen at random. Raises UsageError if hosts forward packets."""

    def __init__(self, topology: Topology, rate_mbps: float, settings: Settings, seed: int) -> None:
        """`rate_mbps` is the rate of a link of speed 1."""
        self._topology = topology
        self._rate_mbps = rate_mbps
        self._settings = settings
        self._rng = random.Random(seed)
        self._candidates = Candidates(topology)
        self.restart()
        if settings.max_subflows < 1:
            raise UsageError("the responsive controller needs at least one subflow per connection")

    def restart(self) -> None:
        """Forget all connections and their routes."""
        self._routes = Routes((self._candidates.capacity * self._rate_mbps).tolist())
        self._connections: dict[FiveTuple, Connection] = {}

    @property
    def connections(self) -> Mapping[FiveTuple, Connection]:
        return self._connections

    @property
    def routes(self) -> Routes:
        return self._routes

    def begin(self, flow: FiveTuple, paths: Sequence[Path] = ()) -> list[Order]:
        """Give a flow that has begun a path, and return the demands that this changes.

        A flow that is known already gets the same orders again: the first ones were lost. A flow that has
        `paths` from before the controller's restart keeps them.
        """
        known = self._connections.get(flow)
        if known is not None:
            if known.sent_mbps is None:
                raise AssertionError(f"{flow}: known without a demand")
            self._take_over(flow, paths[len(known.places) :])
            return [Demand(flow, known.sent_mbps), *self._granted(flow, 0)]
        self._connections[flow] = self._found(flow)
        if paths:
            self._take_over(flow, paths)
            return self._demands()
        self._extend(flow)
        return [*self._granted(flow, 0), *self._demands()]

    def end(self, flow: FiveTuple) -> list[Order]:
        """Forget a flow. The answer has a demand of 0 for it, and other flows' new demands."""
        known = self._connections.pop(flow, None)
        if known is None:
            return [Demand(flow, 0.0)]
        for place in known.places:
            self._routes.remove(flow, known.choices.rows[place])
        return [Demand(flow, 0.0), *self._demands()]

    def request(self, asked: Request) -> list[Order]:
        """Give a flow subflows until they can be expected to cover its gap, up to M in all.

        If the monitor has not got all subflows of earlier answers, it gets those again and no others. The
        monitor is asked about a flow that is unknown, or that has more subflows than are known.
        """
        known = self._connections.get(asked.flow)
        before = len(known.places) if known else 0
        if known is None or asked.subflows > before:
            return [Unknown(asked.flow)]
        if asked.subflows < before:
            return self._granted(asked.flow, asked.subflows)
        gap_mbps = asked.gap_mbps
        while len(known.places) < self._settings.max_subflows:
            expected = self._extend(asked.flow)
            if expected <= 0 or expected > gap_mbps:
                break
            gap_mbps -= expected
        return self._granted(asked.flow, before)

    def _take_over(self, flow: FiveTuple, paths: Sequence[Path]) -> None:
        """Note the subflows that a flow has. Raises ValueError for a path that is not one of its own."""
        known = self._connections[flow]
        for path in paths:
            place = known.choices.names.index(tuple(path[1:-1]))
            known.places.append(place)
            self._routes.add(flow, known.choices.rows[place])

    def _extend(self, flow: FiveTuple) -> float:
        """Put one more subflow on the path with the largest expected throughput, and return that.

        0 if no path promises any, unless it is the first subflow: then there is none and nothing changes.
        """
        known = self._connections[flow]
        rows = known.choices.rows
        expected = [self._routes.expected_mbps(flow, row, known.limit_mbps) for row in rows]
        if not rows[0] and known.places:
            return 0.0  # there is one path, and it has a subflow
        best = max(expected)
        tolerance = CLOSE * self._rate_mbps
        if best <= tolerance and known.places:
            return 0.0
        place = self._rng.choice([i for i, each in enumerate(expected) if each >= best - tolerance])
        known.places.append(place)
        self._routes.add(flow, rows[place])
        return best

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
        return orders

    def _granted(self, flow: FiveTuple, first: int) -> list[Order]:
        known = self._connections[flow]
        return [Grant(flow, number, known.path(number)) for number in range(first, len(known.places))]

    def _found(self, flow: FiveTuple) -> Connection:
        count = FlowCount(flow, 0, ())
        source, receiver = self._candidates.ends(count)
        names = self._topology.nodes[source.host].name, self._topology.nodes[receiver.host].name
        return Connection(
            self._candidates.of(count), names, self._candidates.nic_rate(count) * self._rate_mbps
        )
