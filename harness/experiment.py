"""The definition of an experiment: its figures, each with points, charts and published numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engines.registry import LINUX, LINUX_HOSTS, MININET, SIMULATED_HOSTS, SIMULATOR
from harness.metrics.metrics import Metric
from harness.metrics.published import Published
from harness.options.fields import Hosts
from harness.options.options import SweepOptions, layer_of, without
from model.spec import RunSpec, Settings, TopologySpec
from plots.registry import CHARTS, Chart

RateOf = Callable[[TopologySpec], float]
"""Returns the link rate in Mb/s of a topology: fixed by an option, or the rate that this machine carries."""


@dataclass(frozen=True)
class Figure:
    """One figure: its points, drawn as `charts` (names of `plots.registry.CHARTS`).

    `about` says in two to four sentences what it shows. `section` is the section of the paper, in our words,
    if the experiment has several. `defaults` is its layer of options (`layer_of`); `emulated` is that of real
    hosts if it differs from that of simulated hosts, and `guests` that of real hosts in virtual time, where
    links may have any rate, if it differs from `emulated`. `options` are the names of the options that its
    experiment takes; None is all. Flags:

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
    defaults: Settings
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
    emulated: Settings | None = None
    guests: Settings | None = None
    separate_variants: bool = False
    own_charts: tuple[Chart, ...] = ()
    """Charts of a user's file; `charts` has their names, too."""
    metrics: tuple[Metric, ...] = ()
    """Metrics of a user's file, shown in tables."""
    added: tuple[str, ...] = ()
    """The user's files whose metrics, charts and statements it has beside its own."""
    file: str = ""
    """The user's file that defines it; empty for a registered figure."""
    options: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("defaults", "emulated", "guests"):
            if (layer := getattr(self, name)) is not None:
                object.__setattr__(self, name, layer_of(layer))

    @property
    def has_variants(self) -> bool:
        """Whether real hosts run other points than simulated ones, or none."""
        return self.separate_variants or self.emulated is not None

    def variants(self, options: Settings) -> list[tuple[Settings, Settings]]:
        """Return what the requested engines run: for each variant the user's options that apply to it, with
        its engines, and its settings. One variant has all engines if they run the same.

        Simulated hosts use the figure's own settings. Real hosts use those of `emulated`, whose size and
        duration suit a machine in real time; in virtual time those of `guests`, if the figure has any. If a
        figure has separate variants, `simulator` selects all simulated engines that it compares.
        """
        chosen = options.get("engine") or self.defaults["engine"]
        if not self.has_variants:
            return [({**options, "engine": chosen}, self.defaults)]
        compared = self.defaults["engine"] if self.separate_variants and SIMULATOR in chosen else ()
        simulated = [name for name in compared if name in SIMULATED_HOSTS]
        simulated += [name for name in chosen if name not in LINUX_HOSTS]
        real = tuple(name for name in chosen if name in LINUX_HOSTS)
        emulated: list[tuple[Settings, tuple[str, ...]]] = []
        if self.emulated is not None and self.guests is not None:
            emulated = [({MININET: self.emulated, LINUX: self.guests}[name], (name,)) for name in real]
        elif self.emulated is not None and real:
            emulated = [(self.emulated, real)]
        found: list[tuple[Settings, Settings]] = []
        if simulated:
            own = without(options, Hosts.REAL) if emulated else options
            engines = tuple(dict.fromkeys(simulated))
            found.append(({**own, "engine": engines}, self.defaults))
        for defaults, engines in emulated:
            own = without(options, Hosts.SIMULATED) if simulated else options
            found.append(({**own, "engine": engines}, defaults))
        return found

    def alone(self, folder: str = "", options: tuple[str, ...] | None = None) -> Experiment:
        """Return the experiment of this figure alone, with its name and title. Its points are stored in
        results/`folder`, by default that of its name; `options` are the experiment's `shared_options`."""
        return Experiment(self.name, self.title, folder or self.name, (self,), options)

    def chart(self, name: str) -> Chart:
        """Return one of its charts by name."""
        own = {chart.name: chart for chart in self.own_charts}
        return own.get(name) or CHARTS[name]


@dataclass(frozen=True)
class Experiment:
    """What `refabric run <name>` runs: figures whose points are stored in results/<folder>.

    Figures in one folder share common points, whichever experiment ran them. `shared_options` are the names
    of the options that it takes, if its figures have too little in common for the others; None means all.
    """

    name: str
    title: str
    folder: str
    figures: tuple[Figure, ...]
    shared_options: tuple[str, ...] | None = None
