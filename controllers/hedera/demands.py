"""Natural demands: the rates of flows if only the hosts' links limited them.

Source: Al-Fares et al., Hedera, NSDI 2010, section 4.2. Senders divide their rate among their flows.
Overloaded receivers limit flows above a fair share, and their senders give the difference to their other
flows, until nothing changes. This is max-min fairness without the links between switches.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
