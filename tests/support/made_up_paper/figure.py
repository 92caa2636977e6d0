"""made-up: normalised completion times of flows that arrive at random, under TCP."""

from __future__ import annotations

from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.plan.sweeps import fat_trees, points_on
from tests.support.made_up_paper.statements import LOAD, NORMALISED

NAME = "made-up"
EXPERIMENT = Experiment(
    name=NAME,
    title="Normalised completion times by flow size",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Normalised completion times",
            about="Flows of a web search's sizes arrive at random between all hosts.",
            defaults={
                "k": (4,), "workload": (LOAD,), "engine": (SIMULATOR,), "link.rate_mbps": 100.0,
                "warmup_s": 0.5, "seconds": 3.0,
            },
            topologies=fat_trees,
            points=points_on(fat_trees),
            charts=("fct",),
            published=NORMALISED,
        ),
    ),
)  # fmt: skip
