"""Rates at the equilibrium of congestion control (Kelly, Maulloo and Tan, 1998). Pure numpy.

Links lose packets with the probability at which they are just full. Subflows send at the rate that their
algorithm has at the losses of their paths.

All round-trip times are equal. A path's loss is the sum of its links' losses. Windows are, in units of
sqrt(2) packets, with q the loss on a path and Q the minimum over a connection's paths (sources in
analysis/shares.py):

    reno             1 / sqrt(q)
    ewtcp            1 / (n sqrt(q)), n subflows
    lia              1 / sqrt(Q) in total, split as 1 / q
    olia, coupled    1 / sqrt(Q) in total, only on the paths with the minimum loss

These formulas are homogeneous, so neither the common round-trip time nor the unit of loss changes any rate.
The last one does not say how traffic is split among equally good paths: here as 1 / q^SHARPNESS.

Every price (a link's loss) is multiplied by 1 + step (load / capacity - 1) in each round, until every link is
full or irrelevant. Then no link is more than FULL above its capacity. If a link is more than SPARE below,
its price is less than SPARE of the loss of every path through it. No price falls below NOTHING of the
minimum loss of the paths through its link, because it could not rise again in time. Acknowledgements load
links but are not lost; their load changes slowly and is updated every ACKS_EVERY rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from common.errors import RunError
from engines.flow_level.network import FULL, Floats, FluidNetwork, Ints, firsts

SPARE = 1e-2
SHARPNESS = 16
NOTHING = 1e-3
ACKS_EVERY = 5
MAX_ROUNDS = 20_000
DEADLINE_S = 300.0
LOOK_EVERY = 20


@dataclass(frozen=True, eq=False)
class Paths:
    """Input of an algorithm: the loss on every subflow's path, the subflows' connections (from 0 without
    gaps, ascending), and the index of each connection's first subflow."""

    loss: Floats
    connection: Ints
    first: Ints


def _reno(paths: Paths) -> Floats:
    return 1 / np.sqrt(paths.loss)


def _ewtcp(paths: Paths) -> Floats:
    return _reno(paths) / np.bincount(paths.connection)[paths.connection]


def _lia(paths: Paths) -> Floats:
    return _as_on_the_best(paths, 1)


def _best_paths(paths: Paths) -> Floats:
    return _as_on_the_best(paths, SHARPNESS)


def _as_on_the_best(paths: Paths, power: int) -> Floats:
    """Return TCP's rate on the best path, split among subflows as inverse losses to this power.

    The power is computed by multiplication, because pow() differs between machines.
    """
    least = np.minimum.reduceat(paths.loss, paths.first)
    better = least[paths.connection] / paths.loss
    weight = better
    for _ in range(power - 1):
        weight = weight * better
    total = np.add.reduceat(weight, paths.first) * np.sqrt(least)
    rates: Floats = weight / total[paths.connection]
    return rates


@dataclass(frozen=True)
class Algorithm:
    """Rates at given losses, and the largest step of prices per round: steeper rates need smaller steps."""

    rates: Callable[[Paths], Floats]
    step: float


ALGORITHMS = {
    "reno": Algorithm(_reno, 1.0),
    "ewtcp": Algorithm(_ewtcp, 1.0),
    "lia": Algorithm(_lia, 0.7),
    "olia": Algorithm(_best_paths, 0.7 / SHARPNESS),
    "coupled": Algorithm(_best_paths, 0.7 / SHARPNESS),
}
"""Algorithms by their names in model/congestion.py."""


def equilibrium(network: FluidNetwork, deadline_s: float = DEADLINE_S) -> tuple[Floats, int]:
    """Return every subflow's rate and the number of rounds. Raises RunError if prices do not converge."""
    began = time.monotonic()
    shares, demand = _Shares(network), _Demand(network)
    prices = _first_prices(network)
    least, acks = np.zeros_like(prices), np.zeros_like(prices)
    for rounds in range(1, MAX_ROUNDS + 1):
        loss = network.there.sums(prices)
        rates = demand.rates(loss)
        if rounds % ACKS_EVERY == 0:
            acks = network.ack_loads(rates)
        fill = (network.data_loads(rates) + acks) / network.capacity
        if rounds % LOOK_EVERY == 0:
            lowest = shares.lowest(loss)
            if shares.settled(prices, lowest, fill):
                return network.fitted(rates), rounds
            if time.monotonic() - began > deadline_s:
                break
            least = NOTHING * lowest
        change = 1 + demand.step * (np.clip(fill, 0.5, 2.0) - 1)
        prices = np.maximum(prices * change, least)
    raise RunError(
        f"computing the equilibrium of {', '.join(sorted(set(network.cc)))}: no convergence within {rounds} "
        f"rounds ({deadline_s:g} s at most): choose another --cc, fewer --subflows, or --engine max-min"
    )


def _first_prices(network: FluidNetwork) -> Floats:
    """Return prices as if the subflows that cross a link shared it evenly."""
    crossing = network.there.load(np.ones(len(network.there)), len(network.capacity))
    share: Floats = crossing / network.capacity
    return share * share


class _Demand:
    """Rates of all subflows, each group by its own algorithm."""

    def __init__(self, network: FluidNetwork) -> None:
        names = np.array(network.cc)
        self._groups = []
        for name in sorted(set(network.cc)):
            chosen = np.flatnonzero(names == name)
            _, connection = np.unique(network.connection[chosen], return_inverse=True)
            self._groups.append((ALGORITHMS[name], chosen, connection, firsts(connection)))
        self.step = min(algorithm.step for algorithm, *_ in self._groups)

    def rates(self, loss: Floats) -> Floats:
        if len(self._groups) == 1:
            algorithm, _, connection, first = self._groups[0]
            return algorithm.rates(Paths(loss, connection, first))
        rates = np.empty_like(loss)
        for algorithm, chosen, connection, first in self._groups:
            rates[chosen] = algorithm.rates(Paths(loss[chosen], connection, first))
        return rates


class _Shares:
    """Computes how much each price contributes to the loss of paths."""

    def __init__(self, network: FluidNetwork) -> None:
        self._there, self._count = network.there, len(network.capacity)

    def lowest(self, loss: Floats) -> Floats:
        """Return the minimum loss of the paths through each port; 0 without paths."""
        lowest = self._there.least_at_ports(loss, self._count)
        lowest[np.isinf(lowest)] = 0.0
        return lowest

    def settled(self, prices: Floats, lowest: Floats, fill: Floats) -> bool:
        crossed = lowest > 0
        used, share = fill[crossed], prices[crossed] / lowest[crossed]
        return bool(used.max() < 1 + FULL and np.minimum(1 - used, share).max() < SPARE)
