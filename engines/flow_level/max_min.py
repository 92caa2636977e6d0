"""Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2). Pure.

All subflows grow together, each in proportion to its weight, until a port on their way is full; those stop,
the others go on. So no subflow could have more without taking from one that has, by weight, no more than it.
A subflow weighs 1 where congestion control is not coupled; of a coupled connection's n subflows each weighs
1/n, as that is one TCP to a link which all of them cross. Subflows do not make up for one another.

Acknowledgements take what they need from the ports they cross, and data shares the rest: filling is repeated
with what they took the last time, until rates stay as they are.
"""

from __future__ import annotations

import numpy as np

from common.errors import RunError
from engines.flow_level.network import FULL, Floats, FluidNetwork
from model.congestion import CONGESTION_CONTROLS

MOST_FILLINGS = 50
SAME = FULL / 100
"""Of the largest capacity: as close as two fillings must come."""


def max_min(network: FluidNetwork) -> tuple[Floats, int]:
    """Every subflow's rate, and how often the network was filled. Raises RunError where rates go on changing
    with the acknowledgements they bring about."""
    weight = _weights(network)
    rates, close = np.zeros(len(weight)), SAME * network.capacity.max()
    for fillings in range(1, MOST_FILLINGS + 1):
        before = rates
        rates = fill(network, np.maximum(network.capacity - network.ack_loads(before), 0.0), weight)
        if np.abs(rates - before).max() <= close:
            return network.fitted(rates), fillings
    raise RunError(
        f"max-min rates go on changing after {MOST_FILLINGS} fillings: leave out acknowledgements "
        "(--stack acks=at_once), or choose --engine flow-level"
    )


def _weights(network: FluidNetwork) -> Floats:
    subflows = np.bincount(network.connection)[network.connection]
    coupled = np.array([cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].coupled for cc in network.cc])
    return np.where(coupled, 1 / subflows, 1.0)


def fill(network: FluidNetwork, room: Floats, weight: Floats) -> Floats:
    """Max-min rates of data in `room` a port.

    A port is a bottleneck as soon as no subflow through it is stopped earlier elsewhere, so that many fill in
    one round: what others are given later can only raise the level at which it is full.
    """
    ports = len(room)
    rates, growing, crossings = np.zeros(len(weight)), np.ones(len(weight), bool), network.there
    while growing.any():
        demand = crossings.load(weight, ports)
        level = np.divide(room, demand, out=np.full(ports, np.inf), where=demand > 0)
        subflows = np.flatnonzero(growing)
        stops_at = np.zeros(len(weight))
        stops_at[subflows] = crossings.least(level)
        earliest = np.full(ports, np.inf)
        np.minimum.at(earliest, crossings.port, stops_at[crossings.subflow])
        bottleneck = (demand > 0) & (earliest >= level)
        stopped = np.zeros(len(weight), bool)
        stopped[crossings.subflow[bottleneck[crossings.port]]] = True
        rates[stopped] = weight[stopped] * stops_at[stopped]
        room = np.maximum(room - crossings.only(stopped).load(rates, ports), 0.0)
        growing &= ~stopped
        crossings = crossings.only(growing)
    return rates
