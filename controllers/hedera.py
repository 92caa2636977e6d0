"""Hedera's schedulers (Al-Fares et al., NSDI 2010): demands, global first fit and simulated annealing.

Demands (section 4.2) are the rates that flows would have if only the hosts' links limited them: senders
divide their rate among their flows, overloaded receivers limit flows above a fair share, and their senders
give the difference to their other flows, until nothing changes. This is max-min fairness without the links
between switches. Global first fit (4.3.1) gives a flow the first path on which every link has room for its
demand. Annealing (4.3.2) keeps one core switch per receiving host instead of a path per flow, which makes the
search space small; its energy is the demand beyond capacity. Here a receiver's number selects among the paths
to it in lexicographic order: in a FatTree the core switch, and within a pod the aggregation switch below that
core.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from common.draws import exponential
from common.errors import UsageError
from controllers.hashing import FiveTuple
from controllers.routing import lists_paths, path_of_rank, tables_of
from controllers.scheduler import FlowCount, FlowRates, Network
from topos.topology import Nic, Topology


@dataclass(frozen=True, eq=False)
class Choices:
    """Paths between two switches: names of their nodes, and the links they pass, one row per path."""

    names: tuple[tuple[str, ...], ...]
    rows: list[list[int]]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def links(self) -> npt.NDArray[np.int64]:
        """`rows` as an array; a shorter one repeats its last link."""
        most = max(map(len, self.rows), default=0)
        padded = [[*row, *row[-1:] * (most - len(row))] for row in self.rows]
        return np.array(padded, np.int64).reshape(len(padded), most)


def check_steerable(topology: Topology) -> None:
    """Raise UsageError if hosts forward, because they route at the source."""
    if topology.hosts_forward:
        raise UsageError(f"{topology.kind}: its hosts forward, but a scheduler can steer switches only")


class Candidates:
    """Candidate paths of a multi-rooted tree, or of any network whose hosts do not forward: those that the
    routing policy lists, else the shortest ones.

    Link 2i leads from the `a` end of the topology's link i to its `b` end, link 2i + 1 back. Rates are
    multiples of a link of speed 1. Raises UsageError as `check_steerable` does.
    """

    def __init__(self, topology: Topology, routing: str = "hashed") -> None:
        check_steerable(topology)
        self._topology = topology
        self._tables = tables_of(topology, routing if lists_paths(routing) else "hashed")
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
        return Choices(tuple(names), links)

    def _towards(self, here: int, there: int) -> int:
        link = self._topology.link_between(here, there)
        return 2 * link + (self._topology.links[link].a != here)


def lead(flow: FlowCount, switches: tuple[str, ...]) -> tuple[str, ...]:
    """Return the whole path of a flow through these switches, from host to host."""
    return (flow.path[0], *switches, flow.path[-1])


SHARE = 0.1
"""Share of a host's link above which a flow is scheduled (Hedera, section 4)."""


Selection = Callable[[Sequence[FlowCount], float], list[FlowCount]]
"""Chooses the flows to schedule among those seen, at a time in s."""


class LargeFlows:
    """Select flows whose rate since the previous tick exceeded `SHARE` of their host's link.

    A selected flow stays selected until it ends, because two flows that collide may both become slower.
    `nic_mbps` returns the rate of the link by which a flow leaves its host.
    """

    def __init__(self, nic_mbps: Callable[[FlowCount], float]) -> None:
        self._nic_mbps = nic_mbps
        self._rates = FlowRates(begun_s=0.0)
        self._large: set[FiveTuple] = set()

    def among(self, flows: Sequence[FlowCount], now_s: float) -> list[FlowCount]:
        rates = self._rates.update(flows, now_s)
        self._large = {
            each.flow
            for each in flows
            if each.flow in self._large or rates.get(each.flow, 0.0) > SHARE * self._nic_mbps(each)
        }
        return [each for each in flows if each.flow in self._large]


Hosts = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]
CLOSE = 1e-9
"""Tolerance, as a share of a link's rate: rates closer than this are equal, e.g. three thirds and one."""


def natural_demands(sources: Hosts, receivers: Hosts, sending: Rates, receiving: Rates) -> Rates:
    """Return each flow's demand. Flow i runs from `sources[i]` to `receivers[i]`.

    These are positions in `sending` and `receiving`, the rates of the hosts' links in any unit.
    """
    demand = np.zeros(len(sources))
    limited = np.zeros(len(sources), bool)
    while True:
        before = demand.copy()
        _share_out(demand, limited, sources, sending)
        _limit(demand, limited, receivers, receiving)
        if np.all(np.abs(demand - before) <= CLOSE):
            return demand


def _share_out(demand: Rates, limited: npt.NDArray[np.bool_], sources: Hosts, sending: Rates) -> None:
    """Divide what a sender's limited flows leave equally among its other flows."""
    hosts = len(sending)
    taken = np.bincount(sources[limited], demand[limited], hosts)
    others = np.bincount(sources[~limited], minlength=hosts)
    part = np.maximum(sending - taken, 0.0) / np.maximum(others, 1)
    demand[~limited] = part[sources[~limited]]


def _limit(demand: Rates, limited: npt.NDArray[np.bool_], receivers: Hosts, receiving: Rates) -> None:
    """Limit flows of overloaded receivers to the fair share: equal parts of what smaller flows leave."""
    hosts = len(receiving)
    offered = np.bincount(receivers, demand, hosts)
    crowded = (offered > receiving + CLOSE)[receivers]
    above = crowded.copy()
    while True:
        small = crowded & ~above
        left = receiving - np.bincount(receivers[small], demand[small], hosts)
        share = left / np.maximum(np.bincount(receivers[above], minlength=hosts), 1)
        below = above & (demand < share[receivers] - CLOSE)
        if not below.any():
            break
        above &= ~below
    demand[above] = share[receivers[above]]
    limited |= above


class FirstFit:
    """At every tick, compute demands and reservations again.

    A flow keeps its path while it fits, older flows first. Then the other flows, in the order in which they
    are seen, get a path. A flow that fits nowhere stays on its path without a reservation until a later tick.
    """

    def __init__(self, candidates: Candidates, selection: Selection) -> None:
        self._candidates = candidates
        self._selection = selection
        self._places: dict[FiveTuple, int] = {}
        """Position of each flow's path among its choices, in the order of assignment."""

    def tick(self, network: Network, now_s: float) -> None:
        flows = self._selection(network.flows(), now_s)
        seen = {each.flow: each for each in flows}
        demands = dict(zip(seen, self._candidates.demands(flows), strict=True)) if flows else {}
        free = self._candidates.capacity.copy()
        self._places = {flow: place for flow, place in self._places.items() if flow in seen}
        for flow, place in list(self._places.items()):
            if not self._fits(seen[flow], place, demands[flow], free):
                del self._places[flow]
        for each in flows:
            if each.flow not in self._places:
                self._place(each, demands[each.flow], free, network)

    def _fits(self, flow: FlowCount, place: int, demand: float, free: Rates) -> bool:
        """Return whether the path has room, and reserve it."""
        links = self._candidates.of(flow).links[place]
        if np.any(free[links] < demand - CLOSE):
            return False
        free[links] -= demand
        return True

    def _place(self, flow: FlowCount, demand: float, free: Rates, network: Network) -> None:
        choices = self._candidates.of(flow)
        fitting = np.flatnonzero(np.all(free[choices.links] >= demand - CLOSE, axis=1))
        if not len(fitting):
            return
        place = int(fitting[0])
        free[choices.links[place]] -= demand
        self._places[flow.flow] = place
        path = lead(flow, choices.names[place])
        if path != flow.path:
            network.set_path(flow.flow, path)


STEPS = 3000
STEEPNESS = 15_000.0
"""A state that is worse by the capacity of e links is accepted with probability exp(-e * STEEPNESS /
temperature); the temperature falls from STEPS to 1. Smaller values of STEEPNESS gave worse results for
permutations of 128 hosts."""

Numbers = dict[int, int]
"""Number of each receiving NIC: from 0 to the largest number of paths between two switches, less 1."""


@dataclass(frozen=True, eq=False)
class FlowDemand:
    """A flow's demand, and the links of each of its paths."""

    demand: float
    rows: Sequence[Sequence[int]]


class Annealing:
    """At every tick, search from the previous numbers (random for new receivers), and apply the best
    state."""

    def __init__(self, candidates: Candidates, selection: Selection, seed: int) -> None:
        self._candidates = candidates
        self._selection = selection
        self._rng = random.Random(seed)
        self._most = candidates.most
        self._numbers: Numbers = {}

    def tick(self, network: Network, now_s: float) -> None:
        flows = self._selection(network.flows(), now_s)
        if not flows:
            return
        to = [self._candidates.ends(each)[1].link for each in flows]
        below = {self._candidates.ends(each)[1].link: self._candidates.ends(each)[1].switch for each in flows}
        by_receiver: dict[int, list[FlowDemand]] = defaultdict(list)
        for each, receiver, demand in zip(flows, to, self._candidates.demands(flows), strict=True):
            by_receiver[receiver].append(FlowDemand(demand, self._candidates.of(each).rows))
        for receiver in by_receiver:
            self._numbers.setdefault(receiver, self._rng.randrange(self._most))
        search = Search(by_receiver, below, self._candidates.capacity.tolist(), self._most, self._rng)
        self._numbers |= search.best({receiver: self._numbers[receiver] for receiver in by_receiver})
        for each, receiver in zip(flows, to, strict=True):
            names = self._candidates.of(each).names
            path = lead(each, names[self._numbers[receiver] * len(names) // self._most])
            if path != each.path:
                network.set_path(each.flow, path)


class Search:
    """One search. `below` maps each receiver to its switch."""

    def __init__(
        self,
        by_receiver: dict[int, list[FlowDemand]],
        below: dict[int, int],
        capacity: Sequence[float],
        most: int,
        rng: random.Random,
    ) -> None:
        self._by_receiver = by_receiver
        self._capacity = capacity
        self._most = most
        self._rng = rng
        self._receivers = list(by_receiver)
        at_switch: dict[int, list[int]] = defaultdict(list)
        for receiver in self._receivers:
            at_switch[below[receiver]].append(receiver)
        self._together = [group for group in at_switch.values() if len(group) > 1]
        self._loads: list[float] = []

    def best(self, numbers: Numbers) -> Numbers:
        """Return the state of least energy found, starting from this one."""
        now = dict(numbers)
        energy = self.energy(now)
        best, least = dict(now), energy
        for temperature in range(STEPS, 0, -1):
            if least <= CLOSE:
                break
            changed = self._neighbour(now)
            gain = self._moved(now, changed)
            if gain <= 0 or exponential(self._rng) > gain * STEEPNESS / temperature:
                now |= changed
                energy += gain
                if energy < least - CLOSE:
                    best, least = dict(now), energy
            else:
                self._moved({**now, **changed}, {receiver: now[receiver] for receiver in changed})
        return best

    def energy(self, numbers: Numbers) -> float:
        """Return the demand beyond capacity, summed over links; sets the loads to this state's."""
        self._loads = [0.0] * len(self._capacity)
        for receiver, flows in self._by_receiver.items():
            for flow in flows:
                for link in self._row(flow, numbers[receiver]):
                    self._loads[link] += flow.demand
        return sum(max(0.0, load - room) for load, room in zip(self._loads, self._capacity, strict=True))

    def _neighbour(self, numbers: Numbers) -> Numbers:
        """Swap the numbers of two receivers, at any switches or at one, or draw a new number for one."""
        kind = self._rng.randrange(3)
        among = self._rng.choice(self._together) if kind == 1 and self._together else self._receivers
        one, other = self._rng.choice(among), self._rng.choice(among)
        if kind == 2 or one == other:
            return {one: self._rng.randrange(self._most)}
        return {one: numbers[other], other: numbers[one]}

    def _moved(self, numbers: Numbers, changed: Numbers) -> float:
        """Apply the change to the loads, and return the change of energy."""
        gain = 0.0
        for receiver, number in changed.items():
            for flow in self._by_receiver[receiver]:
                before, after = self._row(flow, numbers[receiver]), self._row(flow, number)
                if before != after:
                    gain += self._add(before, -flow.demand) + self._add(after, flow.demand)
        return gain

    def _add(self, links: Sequence[int], demand: float) -> float:
        gain = 0.0
        for link in links:
            room, load = self._capacity[link], self._loads[link]
            self._loads[link] = load + demand
            gain += max(0.0, load + demand - room) - max(0.0, load - room)
        return gain

    def _row(self, flow: FlowDemand, number: int) -> Sequence[int]:
        return flow.rows[number * len(flow.rows) // self._most]
