"""Simulated annealing: choose a core switch for each receiver's flows.

Source: Al-Fares et al., Hedera, NSDI 2010, section 4.3.2. The state is one core switch per receiving host
instead of a path per flow, which makes the search space small. The energy is the demand beyond capacity. Here
a receiver's number selects among the paths to it in lexicographic order. In a FatTree this is the core
switch, and within a pod the aggregation switch below that core. It works in any network with a set of paths.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from common.draws import exponential
from controllers.hedera.candidates import Candidates, lead
from controllers.hedera.demands import CLOSE
from controllers.hedera.large_flows import Selection
from controllers.scheduler import Network

STEPS = 3000
STEEPNESS = 15_000.0
"""A state that is worse by the capacity of e links is accepted with probability exp(-e * STEEPNESS /
temperature); the temperature falls from STEPS to 1. Smaller values of STEEPNESS gave worse results for
permutations of 128 hosts."""

Numbers = dict[int, int]
"""Number of each receiving NIC: from 0 to the largest number of paths between two switches, less 1."""


@dataclass(frozen=True, eq=False)
class Load:
    """A flow's demand, and the links of its paths."""

    demand: float
    rows: Sequence[Sequence[int]]
    """The links of each of its paths."""


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
        flows = self._selection.among(network.flows(), now_s)
        if not flows:
            return
        to = [self._candidates.ends(each)[1].link for each in flows]
        below = {self._candidates.ends(each)[1].link: self._candidates.ends(each)[1].switch for each in flows}
        by_receiver: dict[int, list[Load]] = defaultdict(list)
        for each, receiver, demand in zip(flows, to, self._candidates.demands(flows), strict=True):
            by_receiver[receiver].append(Load(demand, self._candidates.of(each).rows))
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
        by_receiver: dict[int, list[Load]],
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

    def _row(self, flow: Load, number: int) -> Sequence[int]:
        return flow.rows[number * len(flow.rows) // self._most]
