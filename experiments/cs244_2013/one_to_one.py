"""cs244-one-to-one: TCP and MPTCP with 2 to 8 subflows on a FatTree under a random permutation of long flows.

The figures of SIGCOMM 2011 (Raiciu et al.) on throughput and rank, which a CS244 2013 post reproduced on
Mininet. Its results have a folder of their own: `run_mptcp.sh` runs it for any k and workload.
"""

from __future__ import annotations

from experiments.sigcomm11.statements import ONE_TO_ONE
from harness.experiment import Experiment, Figure
from harness.plan.options import Defaults
from harness.plan.sweeps import fat_trees, points_on

NAME = "cs244-one-to-one"

EXPERIMENT = Experiment(
    name=NAME,
    title="TCP and MPTCP on a FatTree, random permutation (SIGCOMM 2011; CS244 2013)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
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
        ),
    ),
)
