"""Global first fit: a flow gets the first path on which every link has room for its demand.

Source: Al-Fares et al., Hedera, NSDI 2010, section 4.3.1.
"""

from __future__ import annotations

import numpy as np

from controllers.hashing import FiveTuple
from controllers.hedera.candidates import Candidates, lead
from controllers.hedera.demands import CLOSE, Rates
from controllers.hedera.large_flows import Selection
from controllers.scheduler import FlowCount, Network


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
        flows = self._selection.among(network.flows(), now_s)
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
