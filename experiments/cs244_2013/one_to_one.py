"""cs244-one-to-one: TCP and MPTCP with 2 to 8 subflows on a FatTree under a random permutation of long flows.

The figures of SIGCOMM 2011 (Raiciu et al.) on throughput and rank, which a CS244 2013 post reproduced on
Mininet. Its results have a folder of their own: `run_mptcp.sh` runs it for any k and workload.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.sigcomm11 import permutation
from harness.experiment import Experiment

NAME = "cs244-one-to-one"

EXPERIMENT = Experiment(
    name=NAME,
    title="TCP and MPTCP on a FatTree, random permutation (SIGCOMM 2011; CS244 2013)",
    folder=NAME,
    figures=(replace(permutation.FIGURE, name=NAME),),
)
