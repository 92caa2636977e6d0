"""From checked options to a sweep that may start: link rates, plan, checks, results folder, in this order.

Whatever is wrong is found before anything is started or written, the cheapest check first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engines.engine import Engine, Observer
from engines.spec import TopologySpec
from experiments import store, sweep
from experiments.experiment import Experiment
from experiments.options import SweepOptions
from experiments.rate import RateChoice, choose_rate, known_rate
from experiments.store import Store, StoredPoint
from experiments.sweep import Job

PLACEHOLDER_MBPS = 1.0
"""Stands for a rate not yet measured, to plan time and check fitness with; never in a result."""

RateKey = tuple[str, tuple[tuple[str, int], ...]]


def rate_key(topology: TopologySpec) -> RateKey:
    """A topology as a dictionary key."""
    return topology.kind, tuple(sorted(topology.params.items()))


@dataclass(frozen=True)
class Plan:
    """The jobs of an experiment, and the link rate of each topology."""

    jobs: list[Job]
    rates: Mapping[RateKey, RateChoice]

    def rate_of(self, topology: TopologySpec) -> RateChoice:
        return self.rates[rate_key(topology)]

    @property
    def certain(self) -> bool:
        """Whether every rate is known: if not, names and hashes of the jobs are not theirs yet."""
        return all(choice.rate_mbps is not None for choice in self.rates.values())


def make_plan(experiment: Experiment, options: SweepOptions, engine: Engine) -> Plan:
    """The plan as far as it is known without root; starts nothing. Raises UsageError."""
    rates = {
        rate_key(t): known_rate(t, engine.name, options.rate_mbps) for t in experiment.topologies(options)
    }
    return _plan(experiment, options, engine, rates)


def _plan(
    experiment: Experiment, options: SweepOptions, engine: Engine, rates: Mapping[RateKey, RateChoice]
) -> Plan:
    specs = experiment.points(options, lambda t: rates[rate_key(t)].rate_mbps or PLACEHOLDER_MBPS)
    return Plan(sweep.plan(specs, engine, lambda t: rates[rate_key(t)].how), rates)


@dataclass(frozen=True)
class Session:
    """Everything a sweep needs, checked."""

    plan: Plan
    store: Store


def prepare(
    experiment: Experiment,
    options: SweepOptions,
    engine: Engine,
    results: Path,
    force: bool,
    observer: Observer,
) -> Session:
    """Check what is still to run, open the results folder, settle the link rates.

    Raises UsageError and HostUnfitError, in which case no point was started. A sweep that is finished
    already asks nothing of the machine.
    """
    plan = make_plan(experiment, options, engine)
    stored = store.scan(results / experiment.name).points
    _check(plan, stored, engine, force)
    opened = Store.open(results, experiment.name)
    if not plan.certain:
        chosen = {
            rate_key(t): plan.rate_of(t)
            if plan.rate_of(t).rate_mbps is not None
            else choose_rate(t, engine, observer)
            for t in experiment.topologies(options)
        }
        plan = _plan(experiment, options, engine, chosen)
        _check(plan, stored, engine, force)
    for topology in experiment.topologies(options):
        choice = plan.rate_of(topology)
        observer.note(f"link rate at k={topology.k}: {choice.rate_mbps:g} Mb/s ({choice.how})")
    return Session(plan, opened)


def _check(plan: Plan, stored: tuple[StoredPoint, ...], engine: Engine, force: bool) -> None:
    for job in sweep.pending_jobs(plan.jobs, stored, force):
        engine.check(job.spec)
