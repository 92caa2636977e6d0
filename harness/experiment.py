"""What an experiment is: figures of a paper or post, each of points, charts and published numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.claims.published import Published
from harness.plan.options import Defaults, SweepOptions
from model.spec import RunSpec, TopologySpec

RateOf = Callable[[TopologySpec], float]
"""Link rate in Mb/s for a topology: fixed by an option, or what this machine carries."""


@dataclass(frozen=True)
class Figure:
    """One figure: the points it is made of, drawn as `charts` (names of `plots.registry.CHARTS`).

    `about` says in two or three sentences what it shows. A `cpu_bound` figure asks for more than the machine
    carries, to show what that does: its points are meant to be suspect. With `baselines` it has TCP beside
    MPTCP under several congestion controls, whatever `--cc` and `--subflows` choose among those.
    The networks of one that is not `sized` are what it is about: no --k chooses them. One that is not
    `relative` says nothing in percent of a reference flow, so no such flow is run for it. `section` is the
    paper's that it belongs to, in our words, where the experiment has several. `emulated` is what real hosts
    run of it, if not what simulated ones do; with `separate_variants` they run that or nothing.
    """

    name: str
    title: str
    about: str
    defaults: Defaults
    topologies: Callable[[SweepOptions], list[TopologySpec]]
    points: Callable[[SweepOptions, RateOf], list[RunSpec]]
    charts: tuple[str, ...]
    published: tuple[Published, ...] = ()
    cpu_bound: bool = False
    baselines: bool = False
    sized: bool = True
    relative: bool = True
    section: str = ""
    emulated: Defaults | None = None
    separate_variants: bool = False
    options: tuple[str, ...] | None = None
    """The fields of `Given` that its own experiment takes; None: all."""


@dataclass(frozen=True)
class Experiment:
    """What `refabric run <name>` runs: figures whose points are kept in results/<folder>.

    Figures of one folder share the points they have in common, whichever experiment ran them.
    `shared_options` are the fields of `Given` it takes, where its figures have too little in common for the
    others; None: all.
    """

    name: str
    title: str
    folder: str
    figures: tuple[Figure, ...]
    shared_options: tuple[str, ...] | None = None
