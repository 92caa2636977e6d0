"""Schedulers of flows by name: a new one is its file and a line here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controllers.hedera.annealing import Annealing
from controllers.hedera.candidates import Candidates
from controllers.hedera.first_fit import FirstFit
from controllers.hedera.large_flows import All, LargeFlows, Selection
from controllers.scheduler import Application
from topos.topology import Topology


@dataclass(frozen=True)
class Scheduler:
    """`make` takes the paths there are, which flows to look at, and a seed. `title` is for legends. A tick of
    128 flows takes `tick_s` of CPU, to plan time with."""

    title: str
    about: str
    tick_s: float
    make: Callable[[Candidates, Selection, int], Application]


SCHEDULERS: Mapping[str, Scheduler] = {
    "first_fit": Scheduler(
        "first fit",
        "large flows get the first path with room for their demand (Hedera, NSDI 2010)",
        0.002,
        lambda candidates, selection, _seed: FirstFit(candidates, selection),
    ),
    "annealing": Scheduler(
        "annealing",
        "large flows come to each receiver by a core switch that simulated annealing finds (Hedera)",
        0.04,
        Annealing,
    ),
}


def make(name: str, topology: Topology, rate_mbps: float, seed: int, *, ideal: bool = False) -> Application:
    """The application called `name`, on links of `rate_mbps` times their speed. An `ideal` one knows of all
    flows whether they are large, which is all of them; others wait for their bytes. Raises UsageError for a
    network it cannot schedule."""
    candidates = Candidates(topology)
    selection = All() if ideal else LargeFlows(lambda flow: candidates.nic_rate(flow) * rate_mbps)
    return SCHEDULERS[name].make(candidates, selection, seed)
