"""The definition of an experiment: its figures, each with points, charts and published numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.metrics.metric import Metric
from harness.metrics.published import Published
from harness.options.options import Defaults, SweepOptions
from model.spec import RunSpec, TopologySpec
from plots.registry import CHARTS, Chart

RateOf = Callable[[TopologySpec], float]
"""Returns the link rate in Mb/s of a topology: fixed by an option, or the rate that this machine carries."""


@dataclass(frozen=True)
class Figure:
    """One figure: its points, drawn as `charts` (names of `plots.registry.CHARTS`).

    `about` says in two to four sentences what it shows. `section` is the section of the paper, in our words,
    if the experiment has several. `emulated` has the settings for real hosts if they differ from those of
    simulated hosts, and `guests` those for real hosts in virtual time, where links may have any rate, if they
    differ from `emulated`. `options` are the fields of `Given` that its own experiment takes; None means all.
    Flags:

    * `cpu_bound`: it overloads the machine on purpose, so its points are meant to be suspect.
    * `baselines`: it always has TCP beside MPTCP under several congestion controls; `--cc` and `--subflows`
      choose among the latter.
    * `sized`: `--k` chooses its networks. Otherwise the figure is about networks of its own.
    * `relative`: it shows goodput in percent of a baseline, so the baseline is run too.
    * `separate_variants`: real hosts run `emulated` or, if that is None, nothing.
    """

    name: str
    title: str
    about: str
    defaults: Defaults
    topologies: Callable[[SweepOptions], list[TopologySpec]]
    points: Callable[[SweepOptions, RateOf], list[RunSpec]]
    charts: tuple[str, ...]
    published: tuple[Published, ...] = ()
    marks: tuple[float, ...] = ()
    """Published places on the horizontal axis of its charts, such as loads."""
    cpu_bound: bool = False
    baselines: bool = False
    sized: bool = True
    relative: bool = True
    section: str = ""
    emulated: Defaults | None = None
    guests: Defaults | None = None
    separate_variants: bool = False
    own_charts: tuple[Chart, ...] = ()
    """Charts of a user's file; `charts` has their names, too."""
    metrics: tuple[Metric, ...] = ()
    """Metrics of a user's file, shown in tables."""
    file: str = ""
    """The user's file that defines it; empty for a registered figure."""
    options: tuple[str, ...] | None = None

    def chart(self, name: str) -> Chart:
        """Return one of its charts by name."""
        own = {chart.name: chart for chart in self.own_charts}
        return own.get(name) or CHARTS[name]


@dataclass(frozen=True)
class Experiment:
    """What `refabric run <name>` runs: figures whose points are stored in results/<folder>.

    Figures in one folder share common points, whichever experiment ran them. `shared_options` are the fields
    of `Given` that it takes, if its figures have too little in common for the others; None means all.
    """

    name: str
    title: str
    folder: str
    figures: tuple[Figure, ...]
    shared_options: tuple[str, ...] | None = None
