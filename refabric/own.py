"""What a file of one's own needs to define an experiment (docs/guide/own.md).

`refabric new experiment mine.py` writes a file to begin with.
"""

import refabric  # noqa: F401  a wheel makes the other packages importable first
from harness.own_experiment import between, chart, experiment, metric, statement
from harness.results.point_results import PointResult
from topos.topology import Builder, Layer, Topology
from workloads.flow import Flow

__all__ = [
    "Builder",
    "Flow",
    "Layer",
    "PointResult",
    "Topology",
    "between",
    "chart",
    "experiment",
    "metric",
    "statement",
]
