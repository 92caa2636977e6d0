"""The plan of a sweep: its jobs, and the parts of its figures."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from engines import registry as engines
from harness.experiment import Figure
from harness.options.options import SweepOptions
from harness.options.rates import RateChoice, RateKey, rate_key
from harness.plan.jobs import Job
from harness.points import labels
from harness.points.baseline import baseline_of
from harness.results.store import point_name
from model.spec import RunSpec, TopologySpec

NO_CPU_TO_SATURATE = "the effects of an overloaded machine show only in real time (--engine mininet)"
NO_LINUX_HOSTS = "its hosts are simulated; leave --engine out"
NOT_ITS_ENGINES = "it has no points for these engines; leave --engine out"


@dataclass(frozen=True)
class Part:
    """A figure, or its emulated variant, with its options, its points, and the link rate of each topology."""

    figure: Figure
    options: SweepOptions
    topologies: tuple[TopologySpec, ...]
    rates: Mapping[RateKey, RateChoice]
    specs: tuple[RunSpec, ...]

    @property
    def certain(self) -> bool:
        """Whether every rate is known. If not, names and hashes of its points are not final."""
        return all(choice.rate_mbps is not None for choice in self.rates.values())

    @property
    def known(self) -> tuple[RunSpec, ...]:
        """The points whose link rate is known."""
        return tuple(spec for spec in self.specs if self.rate_of(spec.topology).rate_mbps is not None)

    def rate_of(self, topology: TopologySpec) -> RateChoice:
        return self.rates[rate_key(topology)]

    @property
    def why_idle(self) -> str:
        """Why its engines have no point of it."""
        if self.figure.cpu_bound:
            return NO_CPU_TO_SATURATE
        linux = any(name in engines.LINUX_HOSTS for name in self.options.engines)
        return NO_LINUX_HOSTS if linux else NOT_ITS_ENGINES

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of its points and of their baselines."""
        return frozenset(point_name(s) for spec in self.specs for s in (spec, baseline_of(spec)))


@dataclass(frozen=True)
class Plan:
    """The jobs of an experiment, each once, and the parts of its figures."""

    jobs: list[Job]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    """Lines for the user on what is not run."""

    @property
    def certain(self) -> bool:
        """Whether the rates of all parts are known."""
        return all(part.certain for part in self.parts)

    def of(self, figure: Figure) -> list[Part]:
        """Return the parts of a figure."""
        return [part for part in self.parts if part.figure is figure]

    def rate_lines(self) -> list[str]:
        """Return one line for each rate and reason: `link rate at k=4; k=8: 10 Mb/s (fixed)`.

        A network without points has none, as k=48 of a figure that leaves it out.
        """
        choices = [
            (topology, part.rate_of(topology))
            for part in self.parts
            for topology in part.topologies
            if any(spec.topology == topology for spec in part.specs)
        ]
        alike: dict[str, list[str]] = {}
        for topology, choice in choices:
            alike.setdefault(_how(choice), []).append(labels.named(topology))
        return [f"link rate at {'; '.join(dict.fromkeys(nets))}: {how}" for how, nets in alike.items()]

    def left_out(self) -> list[str]:
        """Return lines on figures that an engine cannot show, and on windows that were shortened."""
        idle: dict[str, list[str]] = {}
        for part in self.parts:
            if not part.specs:
                idle.setdefault(part.why_idle, []).append(part.figure.name)
        capped = [line for part in self.parts for line in part.options.window.capped(part.known)]
        return [*(f"{', '.join(names)}: {why}" for why, names in idle.items()), *self.notes, *capped]


def _how(choice: RateChoice) -> str:
    return choice.how if choice.rate_mbps is None else f"{choice.rate_mbps:g} Mb/s ({choice.how})"
