"""The paper's figures on throughput and rank: TCP and MPTCP with 2 to 8 subflows on a FatTree under a random
permutation of long flows."""

from __future__ import annotations

from experiments.sigcomm11.statements import ONE_TO_ONE
from harness.experiment import Figure
from harness.options.options import Defaults
from harness.plan.sweeps import fat_trees, points_on

FIGURE = Figure(
    name="throughput",
    title="TCP and MPTCP on a FatTree",
    about=(
        "Every host sends one long flow and receives one. TCP flows that are hashed onto the same "
        "link share its rate, while other links are idle. MPTCP spreads each flow over several "
        "paths and shifts traffic away from congested ones."
    ),
    defaults=Defaults(ks=(8,), workloads=("one_to_one",), subflows=tuple(range(1, 9))),
    topologies=fat_trees,
    points=points_on(fat_trees),
    charts=("throughput", "rank"),
    published=ONE_TO_ONE,
)
