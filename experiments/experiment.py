"""What an experiment is: a named list of points, how to draw them, and what was published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engines.spec import RunSpec, TopologySpec
from experiments.options import Defaults, SweepOptions
from experiments.published import Published

RateOf = Callable[[TopologySpec], float]
"""Link rate in Mb/s for a topology: fixed by an option, or what this machine carries."""


@dataclass(frozen=True)
class Experiment:
    """A paper's or post's figure. `charts` are names of `plots.registry.CHARTS`."""

    name: str
    title: str
    defaults: Defaults
    topologies: Callable[[SweepOptions], list[TopologySpec]]
    points: Callable[[SweepOptions, RateOf], list[RunSpec]]
    charts: tuple[str, ...]
    published: tuple[Published, ...]
