"""Prepare a sweep from its options: link rates, plan, checks, results folder, in this order.

All errors are found before anything is started or written, by the cheapest check first.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import grammar
from common.errors import HostUnfitError, RunError, UsageError
from engines import registry as engines
from engines.emulation.sandbox import client
from engines.engine import Engine, Observer
from engines.registry import VIRTUAL_TIME
from harness.experiment import Experiment, Figure
from harness.options.options import ENGINE, Given, SweepOptions, resolve
from harness.options.profiles import NO_RETRIES, Retries
from harness.options.rates import RateChoice, RateKey, fixed, rate_key
from harness.plan import begun, rate
from harness.plan.capabilities import LocalCapabilities, MachineCapabilities, unfit_here
from harness.plan.jobs import Job, jobs_of, merged, pending_jobs, retry_jobs
from harness.plan.parts import Part, Plan
from harness.plan.refusals import suited
from harness.plan.sweeps import fat_trees
from harness.plan.variants import (
    NO_COUNTERPART,
    EngineVariant,
    engine_variants,
    lacks_counterpart,
    with_engines,
)
from harness.results import store
from harness.results.store import Scan, Store, StoredPoint, point_name
from model.spec import RunSpec, TopologySpec

NOT_ROOT = (
    "simulated only, because real hosts need root: `sudo .venv/bin/refabric run {name}` runs both and "
    "keeps finished points"
)
PLACEHOLDER_MBPS = 0.999
"""Replaces a rate that is not measured yet, to plan time and to check fitness. It is never in a result, and
no figure has this rate."""


def engine_for(experiment: Experiment, given: Given) -> Engine:
    """Return the requested engine, else those of the experiment's figures. Raises UsageError."""
    given = settled(experiment, given)
    each = (variant.engines for figure in experiment.figures for variant in engine_variants(figure, given))
    names = dict.fromkeys(name for names in each for name in names)
    return engines.make(*(names or given.engine or ()))


def settled(experiment: Experiment, given: Given) -> Given:
    """Return `given` with engines, if it names none."""
    return with_engines(experiment.figures, given, client.available())


def make_plan(
    experiment: Experiment, given: Given, engine: Engine, stored: Iterable[StoredPoint] = ()
) -> Plan:
    """Return the plan as far as it is known without root; start nothing.

    `stored` are the points that a run would find. Raises UsageError.
    """
    here = LocalCapabilities(engine)
    return _plan(experiment, given, here, here.known_rate, stored)


def checked_plan(
    experiment: Experiment, given: Given, engine: Engine, stored: Iterable[StoredPoint] = ()
) -> Plan:
    """Return the plan of `make_plan` as a run would begin it: without the figures that an engine refuses.

    Raises UsageError where the run would. What this machine lacks is no error.
    """
    kept = tuple(stored)
    plan = make_plan(experiment, given, engine, kept)
    return suited(plan, _pending(kept, force=False), functools.partial(unfit_here, engine))[0]


Carried = Callable[[TopologySpec, tuple[str, ...], float], RateChoice]
"""Returns the rate that these engines carry on a topology if they share one, up to a highest rate in Mb/s."""


def _plan(
    experiment: Experiment,
    given: Given,
    machines: MachineCapabilities,
    carried: Carried,
    stored: Iterable[StoredPoint],
) -> Plan:
    """Return the plan. `carried` is called once for each topology whose rate no finished point determines."""
    _check_shared(experiment, given)
    _check_sized(experiment, given)
    _check_networks(experiment, given)
    asked = settled(experiment, given)
    resolved = [
        (figure, _resolved(variant, machines))
        for figure in experiment.figures
        for variant in engine_variants(figure, asked)
    ]
    known = begun.rates(resolved, stored)

    def once(topology: TopologySpec, names: tuple[str, ...], highest_mbps: float) -> RateChoice:
        key = rate_key(topology), names
        if key not in known:
            known[key] = carried(topology, names, highest_mbps)
        return known[key]

    parts = tuple(_part(figure, options, once) for figure, options in resolved)
    plan = Plan(merged(_jobs(part, machines) for part in parts), parts, _notes(experiment, given, asked))
    if not plan.jobs:
        raise UsageError("; ".join(plan.left_out()))
    return plan


def _resolved(variant: EngineVariant, machines: MachineCapabilities) -> SweepOptions:
    coupled_cc, _ = machines.coupled_cc(variant.engines)
    return resolve(variant.given, variant.defaults, coupled_cc)


def _notes(experiment: Experiment, given: Given, asked: Given) -> tuple[str, ...]:
    """Return what real hosts do not run, and why."""
    if given != asked and ENGINE not in (asked.engine or ()):
        return (NOT_ROOT.format(name=experiment.name),)
    lacking = [figure.name for figure in experiment.figures if lacks_counterpart(figure, asked)]
    return (f"{', '.join(lacking)}: {NO_COUNTERPART}",) if lacking else ()


def _check_shared(experiment: Experiment, given: Given) -> None:
    """Raise UsageError for an option that does not mean the same for all figures."""
    if experiment.shared_options is None:
        return
    for option in given.names():
        if option not in experiment.shared_options:
            name = option.replace("_", "-")
            if [figure.name for figure in experiment.figures] == [experiment.name]:
                raise UsageError(f"{experiment.name} fixes its own {name}: leave out --{name}")
            alone = ", ".join(figure.name for figure in experiment.figures)
            raise UsageError(
                f"--{name}: every figure of {experiment.name} has its own; give it to one of them: {alone}"
            )


def _jobs(part: Part, machines: MachineCapabilities) -> list[Job]:
    figure = part.figure
    jobs = jobs_of(part.specs, machines.engine, part.rate_of, figure.cpu_bound, figure.relative)
    return [dataclasses.replace(job, at_once=machines.at_once(job.spec)) for job in jobs]


def _check_sized(experiment: Experiment, given: Given) -> None:
    """Raise UsageError for --k if no figure uses it. A figure with a network of its own, among others,
    ignores it."""
    if given.k is not None and not any(figure.sized for figure in experiment.figures):
        name, ks = experiment.figures[0].name, ",".join(map(str, given.k))
        raise UsageError(f"--k {ks}: {name} has one network of its own; leave out --k")


def _check_networks(experiment: Experiment, given: Given) -> None:
    """Raise UsageError for --topology if no figure takes other networks than its own."""
    if given.topology is None:
        return
    if given.k is not None:
        raise UsageError("--k and --topology: both choose the networks; give one of them")
    takes = (f.topologies is fat_trees or "topology" in (f.options or ()) for f in experiment.figures)
    if not any(takes):
        raise UsageError(
            f"--topology: {experiment.figures[0].name} has networks of its own; leave it out, or run "
            "cs244-one-to-one, which takes any"
        )


def _part(figure: Figure, options: SweepOptions, carried: Carried) -> Part:
    if figure.cpu_bound and VIRTUAL_TIME.issuperset(options.engines):
        return Part(figure, options, (), {}, ())
    topologies = tuple(figure.topologies(options))
    rates = {rate_key(t): _rate(options, t, carried) for t in topologies}
    placeholder = PLACEHOLDER_MBPS * options.auto.overload
    specs = figure.points(options, lambda t: rates[rate_key(t)].rate_mbps or placeholder)
    unknown = {key for key, choice in rates.items() if choice.rate_mbps is None}
    fitted = (s if rate_key(s.topology) in unknown else options.window.of(s) for s in specs)
    return Part(figure, options, topologies, rates, tuple(fitted))


def _rate(options: SweepOptions, topology: TopologySpec, carried: Carried) -> RateChoice:
    if options.rate_mbps is not None:
        return fixed(options.rate_mbps)
    choice = carried(options.auto.basis(topology), options.engines, options.highest_mbps)
    return options.auto.of(choice, topology)


@dataclass(frozen=True)
class Session:
    """Everything that a sweep needs, checked.

    `unfit` are engines that cannot run their remaining points here, with the reason; if others can, the sweep
    runs without them. `refused` are networks of which the machine does not carry even the lowest rate; the
    sweep runs without them too.
    """

    plan: Plan
    store: Store
    found: Scan
    """The content of the results folder before the run."""
    unfit: Mapping[str, HostUnfitError]
    unfit_names: frozenset[str]
    retries: Retries = NO_RETRIES
    """How often a suspect point may be run again."""
    refused: Mapping[RateKey, HostUnfitError] = dataclasses.field(default_factory=dict)

    @property
    def jobs(self) -> list[Job]:
        """The jobs of the plan without those that no engine here can run, or that have no rate."""
        able = [job for job in self.plan.jobs if job.name not in self.unfit_names]
        return [job for job in able if not (job.rate.rate_mbps is None and self.refused)]

    @property
    def lacking(self) -> list[str]:
        """Lines for the user: what was not run, why, and how to get it."""
        counts = Counter(job.spec.engine for job in self.plan.jobs if job.name in self.unfit_names)
        return [
            f"not run: {counts[name]} points of engine {name}, because {error}. After that the same "
            "command runs them and keeps finished points"
            for name, error in self.unfit.items()
        ] + [
            f"not run: {grammar.points(len(self._refused_names(basis)))}, because {error}"
            for basis, error in self.refused.items()
        ]

    def _refused_names(self, basis: RateKey) -> set[str]:
        """Return the points that have no rate because this network was refused."""
        return {
            point_name(spec)
            for part in self.plan.parts
            for spec in part.specs
            if part.rate_of(spec.topology).rate_mbps is None
            if rate_key(part.options.auto.basis(spec.topology)) == basis
        }


def prepare(
    experiment: Experiment,
    given: Given,
    machines: MachineCapabilities,
    results: Path,
    force: bool,
    observer: Observer,
    retries: Retries = NO_RETRIES,
) -> Session:
    """Check what is still to run, open the results folder, determine the link rates.

    Raises UsageError and HostUnfitError; then no point was started. A sweep with finished points continues at
    their rate, and a finished sweep needs nothing from the machine.
    """
    found = store.scan(results / experiment.folder)
    stored = found.points
    kept = () if force else stored
    plan = _plan(experiment, given, machines, machines.known_rate, kept)
    plan, unfit = _able(plan, stored, machines, force)
    opened = Store.open(results, experiment.folder)
    refused: dict[RateKey, HostUnfitError] = {}
    if _unsettled(plan):
        plan = _plan(experiment, given, machines, _settling(machines, unfit, observer, refused), kept)
        plan, unfit = _able(plan, stored, machines, force)
    pending = pending_jobs(plan.jobs, stored, force)
    names = frozenset(job.name for job in pending if job.spec.engine in unfit)
    left, why = _retries(plan, stored, machines, retries)
    session = Session(plan, opened, found, unfit, names, left, refused)
    _check_rates(session)
    for line in (*plan.rate_lines(), *plan.left_out(), *_uncoupled(plan, machines), *session.lacking, *why):
        observer.note(line)
    for part in plan.parts:
        if part.figure.name != experiment.folder:
            store.add_to_manifest(opened.directory, part.figure.name, part.names, opened.tag)
    return session


def _retries(
    plan: Plan, stored: tuple[StoredPoint, ...], machines: MachineCapabilities, retries: Retries
) -> tuple[Retries, list[str]]:
    """Return how often suspect points may be run again: never if the machines cannot run them."""
    again = retry_jobs(plan.jobs, stored, retries)
    unfit = machines.unfit(job.spec for job in again)
    count = len(again)
    lines = [
        f"{grammar.counted(count, 'suspect point')} {grammar.are(count)} not run again: {error}"
        for error in unfit.values()
    ]
    return NO_RETRIES if unfit else retries, lines


def _uncoupled(plan: Plan, machines: MachineCapabilities) -> list[str]:
    """Return a line if MPTCP runs uncoupled because the machine does not support coupling."""
    name, why = machines.coupled_cc(tuple(dict.fromkeys(job.spec.engine for job in plan.jobs)))
    unsaid = [part for part in plan.parts if not part.options.ccs]
    fell_back = any(_runs_only(name, part.specs) for part in unsaid)
    if not why or not fell_back:
        return []
    return [f"MPTCP runs {name}, uncoupled: {why}"]


def _runs_only(cc: str, specs: Sequence[RunSpec]) -> bool:
    """Return whether all MPTCP runs `cc`: a figure that pins others compares them."""
    return {spec.transport.cc for spec in specs if spec.transport.subflows > 1} == {cc}


def _able(
    plan: Plan, stored: tuple[StoredPoint, ...], machines: MachineCapabilities, force: bool
) -> tuple[Plan, Mapping[str, HostUnfitError]]:
    """Return the plan without figures that an engine refuses, and the engines that cannot run their pending
    points on these machines, and why.

    Raises UsageError, and HostUnfitError if that leaves none of the plan's engines.
    """
    able, unfit = suited(plan, _pending(stored, force), machines.unfit)
    if unfit and unfit.keys() == {job.spec.engine for job in able.jobs}:
        raise next(iter(unfit.values()))
    return able, unfit


def _pending(stored: tuple[StoredPoint, ...], force: bool) -> Callable[[Sequence[Job]], list[Job]]:
    return functools.partial(pending_jobs, stored=stored, force=force)


def _unsettled(plan: Plan) -> bool:
    """Return whether a rate is still to be measured or to be checked again."""
    return any(
        not choice.begun
        for part in plan.parts
        if part.options.rate_mbps is None and engines.real_time(part.options.engines)
        for choice in part.rates.values()
    )


def _settling(
    machines: MachineCapabilities,
    unfit: Mapping[str, HostUnfitError],
    observer: Observer,
    refused: dict[RateKey, HostUnfitError],
) -> Carried:
    """Return a function that determines what these machines carry.

    If the engine that would measure the rate cannot run, the known rate is used, or any rate. A network of
    which the machine carries nothing is added to `refused` and has no rate.
    """

    def carried(topology: TopologySpec, names: tuple[str, ...], highest_mbps: float) -> RateChoice:
        if not unfit.keys().isdisjoint(names):
            known = machines.known_rate(topology, names, highest_mbps)
            return rate.unmeasured() if known.rate_mbps is None else known
        try:
            return machines.rate(topology, names, observer, highest_mbps)
        except HostUnfitError as error:
            refused[rate_key(topology)] = error
            return RateChoice(None, rate.NOT_CARRIED)

    return carried


def _check_rates(session: Session) -> None:
    """Raise HostUnfitError if the machine carries nothing of the plan.

    Raise RunError for a point with the placeholder as its rate, because no result may have it.
    """
    jobs = session.jobs
    if not jobs and session.refused:
        raise next(iter(session.refused.values()))
    for job in jobs:
        if job.rate.rate_mbps is None:
            raise RunError(
                f"planning {job.name}: its link rate is not known, a bug of refabric; give --rate MBPS"
            )
