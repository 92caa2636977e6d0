"""Central flow schedulers by name; a new one is one file and one entry here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controllers.hedera import Annealing, Candidates, FirstFit, LargeFlows, Selection
from controllers.scheduler import Application
from topos.topology import Topology


@dataclass(frozen=True)
class Scheduler:
    """One scheduler. `make` takes candidate paths, a selection of flows, and a seed. `title` is for legends.
    `tick_s` is the CPU time of a tick with 128 flows, for plans."""

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
        "each receiver's large flows use a core switch found by simulated annealing (Hedera)",
        0.04,
        Annealing,
    ),
}


def make(
    name: str,
    topology: Topology,
    rate_mbps: float,
    seed: int,
    *,
    ideal: bool = False,
    routing: str = "hashed",
) -> Application:
    """Return the application `name`, for links of `rate_mbps` times their speed and the paths of `routing`.

    An `ideal` one schedules every flow at once; others select large flows by their bytes. Raises UsageError
    for a network that it cannot schedule.
    """
    candidates = Candidates(topology, routing)
    large = LargeFlows(lambda flow: candidates.nic_rate(flow) * rate_mbps)
    selection: Selection = (lambda flows, _now_s: list(flows)) if ideal else large.among
    return SCHEDULERS[name].make(candidates, selection, seed)
