"""Natural demands: the rates of flows that nothing but the hosts' own links limits.

Source: Al-Fares et al., Hedera, NSDI 2010, section 4.2. Senders share out what they can send, receivers that
are offered too much limit those that offer more than a fair share, and what a sender is thus spared goes to
its other flows; again until nothing changes. That is max-min fairness but for links between switches.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Hosts = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]
CLOSE = 1e-9
"""Of a link's rate: below this, two rates are one, as thirds that add up to 1 - 2**-53."""


def natural_demands(sources: Hosts, receivers: Hosts, sending: Rates, receiving: Rates) -> Rates:
    """Of each flow, from `sources[i]` to `receivers[i]`, positions in `sending` and `receiving`: what each
    host's link carries, in any unit of rate."""
    demand = np.zeros(len(sources))
    limited = np.zeros(len(sources), bool)
    while True:
        before = demand.copy()
        _share_out(demand, limited, sources, sending)
        _limit(demand, limited, receivers, receiving)
        if np.all(np.abs(demand - before) <= CLOSE):
            return demand


def _share_out(demand: Rates, limited: npt.NDArray[np.bool_], sources: Hosts, sending: Rates) -> None:
    """Of every sender, what its limited flows leave goes to the others in equal parts."""
    hosts = len(sending)
    taken = np.bincount(sources[limited], demand[limited], hosts)
    others = np.bincount(sources[~limited], minlength=hosts)
    part = np.maximum(sending - taken, 0.0) / np.maximum(others, 1)
    demand[~limited] = part[sources[~limited]]


def _limit(demand: Rates, limited: npt.NDArray[np.bool_], receivers: Hosts, receiving: Rates) -> None:
    """Of every receiver that is offered more than it takes, flows above the fair share get that share: what
    smaller flows leave, in equal parts."""
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
