"""From options to a sweep that may start: link rates, plan, checks, results folder, in this order.

Whatever is wrong is found before anything is started or written, the cheapest check first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.engine import Engine, Observer
from engines.spec import RunSpec, TopologySpec
from experiments import ledger, rate, store, sweep
from experiments.experiment import Experiment, Figure
from experiments.options import Given, SweepOptions, resolve
from experiments.rate import RateChoice
from experiments.reference import reference_of
from experiments.store import Entry, Store, point_name
from experiments.sweep import Job
from fabric.errors import UsageError

PLACEHOLDER_MBPS = 0.999
"""Stands for a rate not yet measured, to plan time and check fitness with; never in a result. No rate that
a figure names."""

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


def _told(choice: RateChoice) -> str:
    return choice.how if choice.rate_mbps is None else f"{choice.rate_mbps:g} Mb/s ({choice.how})"


def make_plan(experiment: Experiment, given: Given, engine: Engine) -> Plan:
    """The plan as far as it is known without root; starts nothing. Raises UsageError."""
    return _plan(experiment, given, engine, lambda topology: rate.known_rate(topology, engine.name))


def _plan(
    experiment: Experiment, given: Given, engine: Engine, carried: Callable[[TopologySpec], RateChoice]
) -> Plan:
    """The plan, given what this machine carries on a topology, which is asked once for each."""
    known: dict[RateKey, RateChoice] = {}

    def once(topology: TopologySpec) -> RateChoice:
        key = rate_key(topology)
        if key not in known:
            known[key] = carried(topology)
        return known[key]

    coupled_cc, _ = engine.coupled_cc()
    resolved = [(figure, resolve(given, figure.defaults, coupled_cc)) for figure in experiment.figures]
    parts = tuple(_part(figure, options, given, once) for figure, options in resolved)
    jobs = [sweep.plan(part.specs, engine, part.rate_of, part.figure.cpu_bound) for part in parts]
    return Plan(sweep.merged(jobs), parts)


def _part(
    figure: Figure, options: SweepOptions, given: Given, carried: Callable[[TopologySpec], RateChoice]
) -> Part:
    if given.k is not None and not figure.sized:
        raise UsageError(f"--k {given.k}: {figure.name} has one network of its own; leave out --k")
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
    """Everything a sweep needs, checked."""

    plan: Plan
    store: Store


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
    _check(plan, stored, engine, force)
    opened = Store.open(results, experiment.folder)
    if not plan.certain:
        plan = _plan(experiment, given, engine, lambda t: rate.choose_rate(t, engine, observer))
        _check(plan, stored, engine, force)
    for line in (*plan.rate_lines(), *_uncoupled(plan, engine)):
        observer.note(line)
    for part in plan.parts:
        if part.figure.name != experiment.folder:
            ledger.note(opened.directory, part.figure.name, part.names, opened.tag)
    return Session(plan, opened)


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


def _check(plan: Plan, stored: tuple[Entry, ...], engine: Engine, force: bool) -> None:
    for job in sweep.pending_jobs(plan.jobs, stored, force):
        engine.check(job.spec)
