"""Rates without packets or time: an equilibrium of congestion control, and max-min fairness. Pure numpy.

Equilibrium (Kelly, Maulloo and Tan, 1998): links lose packets with the probability at which they are just
full, and subflows send at the rate that their algorithm has at the losses of their paths. All round-trip
times are equal. A path's loss is the sum of its links' losses. Windows are, in units of sqrt(2) packets, with
q the loss on a path and Q the minimum over a connection's paths (sources in analysis/shares.py):

    reno             1 / sqrt(q)
    ewtcp            1 / (n sqrt(q)), n subflows
    lia              1 / sqrt(Q) in total, split as 1 / q
    olia, coupled    1 / sqrt(Q) in total, only on the paths with the minimum loss

These formulas are homogeneous, so neither the common round-trip time nor the unit of loss changes any rate.
The last one does not say how traffic is split among equally good paths: here as 1 / q^SHARPNESS.

Max-min fairness by progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): the rates of
all subflows grow together, in proportion to their weights, until a port on their path is full. Then these
subflows stop, and the others continue. A subflow has weight 1 if its congestion control is not coupled. The n
subflows of a coupled connection have weight 1/n each, like one TCP on a link that all of them cross. Subflows
do not compensate for each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common.errors import RunError
from fabric._core import Crossings
from model.congestion import CONGESTION_CONTROLS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FULL = 2e-3
"""Relative accuracy of all rates here."""


def firsts(ascending: Ints) -> Ints:
    """Return the indices at which runs of equal numbers begin."""
    return np.flatnonzero(np.diff(ascending, prepend=-1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class FluidNetwork:
    """Capacities and paths of a point.

    Each subflow's data crosses the ports `there`, its acknowledgements the ports `back`. `connection`
    (ascending from 0) and `cc` are per subflow. `ack_share` is the load of acknowledgements per unit of
    data. Rates are on the wire, headers included, in any unit.
    """

    capacity: Floats
    there: Crossings
    back: Crossings
    ack_share: Floats
    connection: Ints
    cc: tuple[str, ...]

    def ack_loads(self, rates: Floats) -> Floats:
        """Return the load of acknowledgements on every port."""
        return self.back.load(rates * self.ack_share, len(self.capacity))

    def data_loads(self, rates: Floats) -> Floats:
        """Return the load of data on every port."""
        return self.there.load(rates, len(self.capacity))

    def loads(self, rates: Floats) -> Floats:
        """Return the total load on every port."""
        return self.data_loads(rates) + self.ack_loads(rates)

    def fitted(self, rates: Floats) -> Floats:
        """Return rates reduced where a port is overloaded, so that no port exceeds its capacity."""
        room = np.maximum(self.capacity - self.ack_loads(rates), 0.0)
        data = self.data_loads(rates)
        passes = np.divide(room, data, out=np.ones_like(room), where=data > room)
        return rates * self.there.least(passes)


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
class RateLaw:
    """Rates at given losses, and the largest step of prices per round: steeper rates need smaller steps."""

    rates: Callable[[Paths], Floats]
    step: float


RATE_LAWS = {
    "reno": RateLaw(_reno, 1.0),
    "ewtcp": RateLaw(_ewtcp, 1.0),
    "lia": RateLaw(_lia, 0.7),
    "olia": RateLaw(_best_paths, 0.7 / SHARPNESS),
    "coupled": RateLaw(_best_paths, 0.7 / SHARPNESS),
}
"""By the names of congestion controls in model/congestion.py."""


def equilibrium(network: FluidNetwork, deadline_s: float = DEADLINE_S) -> tuple[Floats, int]:
    """Return every subflow's rate and the number of rounds. Raises RunError if prices do not converge.

    Every price (a link's loss) is multiplied by 1 + step (load / capacity - 1) in each round, until every
    link is full or irrelevant. Then no link is more than FULL above its capacity. If a link is more than
    SPARE below, its price is less than SPARE of the loss of every path through it. No price falls below
    NOTHING of the minimum loss of the paths through its link, because it could not rise again in time.
    Acknowledgements load links but are not lost; their load changes slowly and is updated every ACKS_EVERY
    rounds.
    """
    began, ports = time.monotonic(), len(network.capacity)
    demand, step = _demand(network)
    # The first prices are those of links that all subflows on them share evenly.
    evenly = network.there.load(np.ones(len(network.there)), ports) / network.capacity
    prices = evenly * evenly
    least, acks = np.zeros_like(prices), np.zeros_like(prices)
    for rounds in range(1, MAX_ROUNDS + 1):
        loss = network.there.sums(prices)
        rates = demand(loss)
        if rounds % ACKS_EVERY == 0:
            acks = network.ack_loads(rates)
        fill = (network.data_loads(rates) + acks) / network.capacity
        if rounds % LOOK_EVERY == 0:
            lowest = network.there.least_at_ports(loss, ports)
            lowest[np.isinf(lowest)] = 0.0  # ports without paths
            crossed = lowest > 0
            used, share = fill[crossed], prices[crossed] / lowest[crossed]
            if used.max() < 1 + FULL and np.minimum(1 - used, share).max() < SPARE:
                return network.fitted(rates), rounds
            if time.monotonic() - began > deadline_s:
                break
            least = NOTHING * lowest
        change = 1 + step * (np.clip(fill, 0.5, 2.0) - 1)
        prices = np.maximum(prices * change, least)
    raise RunError(
        f"computing the equilibrium of {', '.join(sorted(set(network.cc)))}: no convergence within {rounds} "
        f"rounds ({deadline_s:g} s at most): choose another --cc, fewer --subflows, or --engine max-min"
    )


def _demand(network: FluidNetwork) -> tuple[Callable[[Floats], Floats], float]:
    """Return the function from the losses of all paths to the rates of all subflows, each group by its own
    law, and the smallest of their steps."""
    names = np.array(network.cc)
    groups = []
    for name in sorted(set(network.cc)):
        chosen = np.flatnonzero(names == name)
        _, connection = np.unique(network.connection[chosen], return_inverse=True)
        groups.append((RATE_LAWS[name], chosen, connection, firsts(connection)))

    def rates(loss: Floats) -> Floats:
        if len(groups) == 1:
            law, _, connection, first = groups[0]
            return law.rates(Paths(loss, connection, first))
        found = np.empty_like(loss)
        for law, chosen, connection, first in groups:
            found[chosen] = law.rates(Paths(loss[chosen], connection, first))
        return found

    return rates, min(law.step for law, *_ in groups)


MAX_FILLINGS = 50
SAME = FULL / 100
"""Largest change between two fillings at convergence, as a share of the largest capacity."""


def max_min(network: FluidNetwork) -> tuple[Floats, int]:
    """Return every subflow's rate and the number of fillings. Raises RunError if rates do not converge.

    Acknowledgements take what they need from the ports they cross, and data shares the rest. The filling is
    repeated with the previous acknowledgements until rates no longer change.
    """
    subflows = np.bincount(network.connection)[network.connection]
    coupled = np.array([cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].coupled for cc in network.cc])
    weight = np.where(coupled, 1 / subflows, 1.0)
    rates, close = np.zeros(len(weight)), SAME * network.capacity.max()
    for fillings in range(1, MAX_FILLINGS + 1):
        before = rates
        rates = fill(network, np.maximum(network.capacity - network.ack_loads(before), 0.0), weight)
        if np.abs(rates - before).max() <= close:
            return network.fitted(rates), fillings
    raise RunError(
        f"computing max-min rates: no convergence after {MAX_FILLINGS} fillings: omit acknowledgements "
        "(--stack acks=at_once), or choose --engine flow-level"
    )


def fill(network: FluidNetwork, room: Floats, weight: Floats) -> Floats:
    """Return max-min rates of data with `room` left on each port.

    A port is a bottleneck if none of its subflows stops earlier elsewhere, so one round fills many ports.
    What others receive later can only raise the level at which such a port is full.
    """
    ports = len(room)
    rates, growing, crossings = np.zeros(len(weight)), np.arange(len(weight)), network.there
    while len(growing):
        demand = crossings.load(weight[growing], ports)
        level = np.divide(room, demand, out=np.full(ports, np.inf), where=demand > 0)
        stops_at = crossings.least(level)
        bottleneck = (demand > 0) & (crossings.least_at_ports(stops_at, ports) >= level)
        stopped = crossings.least(np.where(bottleneck, 0.0, 1.0)) == 0
        ended = growing[stopped]
        rates[ended] = weight[ended] * stops_at[stopped]
        room = np.maximum(room - crossings.only(stopped).load(rates[ended], ports), 0.0)
        growing, crossings = growing[~stopped], crossings.only(~stopped)
    return rates
