"""Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2). Pure.

The rates of all subflows grow together, in proportion to their weights, until a port on their path is full.
Then these subflows stop, and the others continue. No subflow could have more without taking from one that
has, by weight, no more. A subflow has weight 1 if its congestion control is not coupled. The n subflows of a
coupled connection have weight 1/n each, like one TCP on a link that all of them cross. Subflows do not
compensate for each other.

Acknowledgements take what they need from the ports they cross, and data shares the rest. The filling is
repeated with the previous acknowledgements until rates no longer change.
"""

from __future__ import annotations

import numpy as np

from common.errors import RunError
from engines.flow_level.network import FULL, Floats, FluidNetwork
from model.congestion import CONGESTION_CONTROLS

MAX_FILLINGS = 50
SAME = FULL / 100
"""Largest change between two fillings at convergence, as a share of the largest capacity."""


def max_min(network: FluidNetwork) -> tuple[Floats, int]:
    """Return every subflow's rate and the number of fillings. Raises RunError if rates do not converge."""
    weight = _weights(network)
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


def _weights(network: FluidNetwork) -> Floats:
    subflows = np.bincount(network.connection)[network.connection]
    coupled = np.array([cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].coupled for cc in network.cc])
    return np.where(coupled, 1 / subflows, 1.0)


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
