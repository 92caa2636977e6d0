"""From options to a sweep that may start: link rates, plan, checks, results folder, in this order.

Whatever is wrong is found before anything is started or written, the cheapest check first.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines import registry as engines
from engines.engine import Engine, Observer
from engines.registry import VIRTUAL_TIME
from engines.spec import RunSpec, TopologySpec
from experiments import ledger, rate, store, sweep
from experiments.experiment import Experiment, Figure
from experiments.options import Given, SweepOptions, parse_engines, resolve
from experiments.rate import RateChoice
from experiments.reference import reference_of
from experiments.store import Entry, Store, point_name
from experiments.sweep import Job
from fabric.errors import HostUnfitError, UsageError

PLACEHOLDER_MBPS = 0.999
"""Stands for a rate not yet measured, to plan time and check fitness with; never in a result. No rate that
a figure names."""

NO_CPU_TO_SATURATE = "what too much work for a machine does shows in real time alone (--engine mininet)"

RateKey = tuple[str, tuple[tuple[str, int], ...]]


def rate_key(topology: TopologySpec) -> RateKey:
    """A topology as a dictionary key."""
    return topology.kind, tuple(sorted(topology.params.items()))


@dataclass(frozen=True)
class Part:
    """A figure with the options it runs under: its points, and the link rate of each topology."""

    figure: Figure
    options: SweepOptions
    topologies: tuple[TopologySpec, ...]
    rates: Mapping[RateKey, RateChoice]
    specs: tuple[RunSpec, ...]

    def rate_of(self, topology: TopologySpec) -> RateChoice:
        return self.rates[rate_key(topology)]

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of its points and their references."""
        return frozenset(point_name(s) for spec in self.specs for s in (spec, reference_of(spec)))


@dataclass(frozen=True)
class Plan:
    """The jobs of an experiment, each once, and its figures' parts in them."""

    jobs: list[Job]
    parts: tuple[Part, ...]

    @property
    def certain(self) -> bool:
        """Whether every rate is known: if not, names and hashes of the jobs are not theirs yet."""
        return all(c.rate_mbps is not None for part in self.parts for c in part.rates.values())

    def rate_lines(self) -> list[str]:
        """For the reader: `link rate at k=4: 10 Mb/s (fixed)`, a line for each network and way to a rate."""
        choices = [(topology, part.rate_of(topology)) for part in self.parts for topology in part.topologies]
        return list(dict.fromkeys(f"link rate at {rate.named(t)}: {_told(choice)}" for t, choice in choices))

    def left_out(self) -> list[str]:
        """A line on figures that this engine has nothing to say to."""
        names = [part.figure.name for part in self.parts if not part.specs]
        return [f"{', '.join(names)}: {NO_CPU_TO_SATURATE}"] if names else []


def _told(choice: RateChoice) -> str:
    return choice.how if choice.rate_mbps is None else f"{choice.rate_mbps:g} Mb/s ({choice.how})"


def engine_for(experiment: Experiment, given: Given) -> Engine:
    """The engine asked for, else those that the experiment's figures run in. Raises UsageError."""
    pinned = (name for figure in experiment.figures for name in figure.defaults.engines)
    return engines.make(*(parse_engines(given.engine) or dict.fromkeys(pinned)))


def make_plan(experiment: Experiment, given: Given, engine: Engine) -> Plan:
    """The plan as far as it is known without root; starts nothing. Raises UsageError."""
    return _plan(experiment, given, engine, lambda topology: rate.known_rate(topology, engine.name))


def _plan(
    experiment: Experiment, given: Given, engine: Engine, carried: Callable[[TopologySpec], RateChoice]
) -> Plan:
    """The plan, given what this machine carries on a topology, which is asked once for each."""
    _check_shared(experiment, given)
    known: dict[RateKey, RateChoice] = {}

    def once(topology: TopologySpec) -> RateChoice:
        key = rate_key(topology)
        if key not in known:
            known[key] = carried(topology)
        return known[key]

    coupled_cc, _ = engine.coupled_cc()
    resolved = [(figure, resolve(given, figure.defaults, coupled_cc)) for figure in experiment.figures]
    parts = tuple(_part(figure, options, given, once) for figure, options in resolved)
    jobs = [_jobs(part, engine) for part in parts]
    plan = Plan(sweep.merged(jobs), parts)
    if not plan.jobs:
        raise UsageError("; ".join(plan.left_out()))
    return plan


def _check_shared(experiment: Experiment, given: Given) -> None:
    """Raises UsageError for an option that is not the same thing to all figures."""
    if experiment.shared_options is None:
        return
    for option in dataclasses.fields(given):
        value = getattr(given, option.name)
        if option.name not in experiment.shared_options and value != option.default:
            name = option.name.replace("_", "-")
            alone = ", ".join(figure.name for figure in experiment.figures)
            raise UsageError(
                f"--{name}: every figure of {experiment.name} has its own; give it to one of them: {alone}"
            )


def _jobs(part: Part, engine: Engine) -> list[Job]:
    return sweep.plan(part.specs, engine, part.rate_of, part.figure.cpu_bound, part.figure.relative)


def _part(
    figure: Figure, options: SweepOptions, given: Given, carried: Callable[[TopologySpec], RateChoice]
) -> Part:
    if given.k is not None and not figure.sized:
        raise UsageError(f"--k {given.k}: {figure.name} has one network of its own; leave out --k")
    if figure.cpu_bound and VIRTUAL_TIME.issuperset(options.engines):
        return Part(figure, options, (), {}, ())
    topologies = tuple(figure.topologies(options))
    rates = {rate_key(t): _rate(options, t, carried) for t in topologies}
    placeholder = PLACEHOLDER_MBPS * options.auto.overload
    specs = figure.points(options, lambda t: rates[rate_key(t)].rate_mbps or placeholder)
    return Part(figure, options, topologies, rates, tuple(specs))


def _rate(
    options: SweepOptions, topology: TopologySpec, carried: Callable[[TopologySpec], RateChoice]
) -> RateChoice:
    if options.rate_mbps is not None:
        return rate.fixed(options.rate_mbps)
    return options.auto.of(carried(options.auto.basis(topology)), topology)


@dataclass(frozen=True)
class Session:
    """Everything a sweep needs, checked. `unfit` are engines that cannot run here what is left to run of
    theirs, and why: where others can, the sweep goes without."""

    plan: Plan
    store: Store
    unfit: Mapping[str, HostUnfitError]
    unfit_names: frozenset[str]

    @property
    def jobs(self) -> list[Job]:
        """The plan's, without those that no engine here can run."""
        return [job for job in self.plan.jobs if job.name not in self.unfit_names]

    @property
    def lacking(self) -> list[str]:
        """For the reader: what was not run, why, and how to get it."""
        counts = Counter(job.spec.engine for job in self.plan.jobs if job.name in self.unfit_names)
        return [
            f"not run: {counts[name]} points of engine {name}, because {error}. Once that is done the same "
            "command runs them; what is finished stays"
            for name, error in self.unfit.items()
        ]


def prepare(
    experiment: Experiment,
    given: Given,
    engine: Engine,
    results: Path,
    force: bool,
    observer: Observer,
) -> Session:
    """Check what is still to run, open the results folder, settle the link rates.

    Raises UsageError and HostUnfitError, in which case no point was started. A sweep that is finished
    already asks nothing of the machine.
    """
    plan = make_plan(experiment, given, engine)
    stored = store.index(results / experiment.folder)
    unfit = _unfit(plan, stored, engine, force)
    opened = Store.open(results, experiment.folder)
    if not plan.certain:
        plan = _plan(experiment, given, engine, lambda t: _rate_here(t, engine, unfit, observer))
        unfit = _unfit(plan, stored, engine, force)
    pending = sweep.pending_jobs(plan.jobs, stored, force)
    names = frozenset(job.name for job in pending if job.spec.engine in unfit)
    session = Session(plan, opened, unfit, names)
    for line in (*plan.rate_lines(), *plan.left_out(), *_uncoupled(plan, engine), *session.lacking):
        observer.note(line)
    for part in plan.parts:
        if part.figure.name != experiment.folder:
            ledger.note(opened.directory, part.figure.name, part.names, opened.tag)
    return session


def _uncoupled(plan: Plan, engine: Engine) -> list[str]:
    """A line where MPTCP runs uncoupled because this machine cannot do otherwise."""
    name, why = engine.coupled_cc()
    unsaid = [part for part in plan.parts if not part.options.ccs]
    fell_back = any(_runs_only(name, part.specs) for part in unsaid)
    if not why or not fell_back:
        return []
    return [f"MPTCP runs {name}, uncoupled: {why}"]


def _runs_only(cc: str, specs: Sequence[RunSpec]) -> bool:
    """Whether there is MPTCP, all of it under `cc`: a figure that pins others compares them."""
    return {spec.transport.cc for spec in specs if spec.transport.subflows > 1} == {cc}


def _unfit(plan: Plan, stored: tuple[Entry, ...], engine: Engine, force: bool) -> dict[str, HostUnfitError]:
    """Engines that cannot run here what is left to run of theirs. Raises UsageError, and HostUnfitError where
    that leaves none of the plan's engines."""
    unfit: dict[str, HostUnfitError] = {}
    for job in sweep.pending_jobs(plan.jobs, stored, force):
        try:
            engine.check(job.spec)
        except HostUnfitError as error:
            unfit.setdefault(job.spec.engine, error)
    if unfit and unfit.keys() == {job.spec.engine for job in plan.jobs}:
        raise next(iter(unfit.values()))
    return unfit


def _rate_here(
    topology: TopologySpec, engine: Engine, unfit: Mapping[str, HostUnfitError], observer: Observer
) -> RateChoice:
    """What this machine carries; where the engine that would measure it cannot, any rate will do."""
    return rate.unmeasured() if unfit else rate.choose_rate(topology, engine, observer)
