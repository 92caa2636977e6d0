"""Rates at the equilibrium of congestion control: links lose packets with the probability at which they are
just full, and subflows send what their algorithm gives them at the losses of their paths (Kelly, Maulloo and
Tan, 1998). Pure numpy.

All round-trip times are equal. A path loses what its links lose, and an algorithm's windows are, in units
of sqrt(2) packets, with q the loss on a path and Q the least of a connection's (analysis/theory.py has
where this stands):

    reno             1 / sqrt(q)
    ewtcp            1 / (n sqrt(q)), n subflows
    lia              1 / sqrt(Q) in all, split as 1 / q
    olia, coupled    1 / sqrt(Q) in all, on the paths with the least loss alone

As these are homogeneous, neither the common round-trip time nor the unit of loss changes any rate. The last
leaves open who sends how much where paths are equally good: traffic is split as 1 / q^SHARPNESS instead.

Every price (a link's loss) is multiplied by 1 + step (load / capacity - 1), again and again, until each link
is either full or has no say: none is more than FULL above its capacity, and where one is more than SPARE
below, its price is less than SPARE of every path's through it. No price falls below NOTHING of the least
loss there is on a path through its link, or it could not come back in time. Acknowledgements load links and
lose nothing; what they load is looked at every ACKS_EVERY rounds, as they are slow to change.
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
MOST_ROUNDS = 20_000
DEADLINE_S = 300.0
LOOK_EVERY = 20


@dataclass(frozen=True, eq=False)
class Paths:
    """What an algorithm may look at: the loss on every subflow's path, their connections, counted from 0
    without gaps and in order, and where each connection's subflows begin."""

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
    """In all what TCP would send on the best path, split as the losses' inverse to this power; multiplied
    out, as pow() differs between machines."""
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
    """Rates at given losses, and how far prices may go in a round: the steeper rates react, the less."""

    rates: Callable[[Paths], Floats]
    step: float


ALGORITHMS = {
    "reno": Algorithm(_reno, 1.0),
    "ewtcp": Algorithm(_ewtcp, 1.0),
    "lia": Algorithm(_lia, 0.7),
    "olia": Algorithm(_best_paths, 0.7 / SHARPNESS),
    "coupled": Algorithm(_best_paths, 0.7 / SHARPNESS),
}
"""By the names of model/congestion.py."""


def equilibrium(network: FluidNetwork, deadline_s: float = DEADLINE_S) -> tuple[Floats, int]:
    """Every subflow's rate, and the rounds it took. Raises RunError where prices do not settle in time."""
    began = time.monotonic()
    shares, demand = _Shares(network), _Demand(network)
    prices = _first_prices(network)
    least, acks = np.zeros_like(prices), np.zeros_like(prices)
    for rounds in range(1, MOST_ROUNDS + 1):
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
        f"the equilibrium of {', '.join(sorted(set(network.cc)))} did not settle within {rounds} rounds "
        f"({deadline_s:g} s at most): choose another --cc, fewer --subflows, or --engine max-min"
    )


def _first_prices(network: FluidNetwork) -> Floats:
    """As if every link had to be shared evenly by the subflows that cross it."""
    crossing = np.bincount(network.there.port, minlength=len(network.capacity))
    share: Floats = crossing / network.capacity
    return share * share


class _Demand:
    """What all subflows send, each group by its own algorithm."""

    def __init__(self, network: FluidNetwork) -> None:
        names = np.array(network.cc)
        self._groups = []
        for name in sorted(set(network.cc)):
            chosen = np.flatnonzero(names == name)
            _, connection = np.unique(network.connection[chosen], return_inverse=True)
            self._groups.append((ALGORITHMS[name], chosen, connection, firsts(connection)))
        self.step = min(algorithm.step for algorithm, *_ in self._groups)

    def rates(self, loss: Floats) -> Floats:
        rates = np.empty_like(loss)
        for algorithm, chosen, connection, first in self._groups:
            rates[chosen] = algorithm.rates(Paths(loss[chosen], connection, first))
        return rates


class _Shares:
    """Tells how much prices matter."""

    def __init__(self, network: FluidNetwork) -> None:
        there = network.there
        order = np.argsort(there.port, kind="stable")
        self._subflow = there.subflow[order]
        self._first = firsts(there.port[order])
        self._ports = there.port[order][self._first]
        self._count = len(network.capacity)

    def lowest(self, loss: Floats) -> Floats:
        """Of every port, the least loss on a path through it; 0 where none leads."""
        lowest = np.zeros(self._count)
        lowest[self._ports] = np.minimum.reduceat(loss[self._subflow], self._first)
        return lowest

    def settled(self, prices: Floats, lowest: Floats, fill: Floats) -> bool:
        used, share = fill[self._ports], prices[self._ports] / lowest[self._ports]
        return bool(used.max() < 1 + FULL and np.minimum(1 - used, share).max() < SPARE)
