"""Prepare a sweep from its options: link rates, plan, checks, results folder, in this order.

All errors are found before anything is started or written, by the cheapest check first.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import text
from common.errors import HostUnfitError, RunError, UsageError
from engines import registry as engines
from engines.emulation.sandbox import client
from engines.engine import Engine, Observer
from engines.registry import LINUX_HOSTS, SIMULATOR, VIRTUAL_TIME
from harness.experiment import Experiment, Figure
from harness.options.options import ENGINE, SweepOptions, option_name, overriding, sweeps_of
from harness.options.rates import RateChoice, RateKey, fixed, long_enough, rate_key
from harness.plan.jobs import FigurePlan, Job, Plan, jobs_of, merged, pending_jobs, retry_jobs
from harness.plan.machines import (
    BEGUN,
    NOT_CARRIED,
    UNMEASURED,
    UNMEASURED_MBPS,
    Machines,
    ThisMachine,
    unfit_here,
)
from harness.plan.sweeps import fat_trees
from harness.results import store
from harness.results.point_results import PointResult
from harness.results.store import Scan, Store, point_name
from model.spec import RunSpec, Settings, TopologySpec
from model.words import words_at

NOT_ROOT = (
    "simulated only, because real hosts need root: `sudo .venv/bin/refabric run {name}` runs both and "
    "keeps finished points"
)
NO_COUNTERPART = "simulated only: no network that real hosts can run in real time would show the same"
PLACEHOLDER_MBPS = 0.999
"""Replaces a rate that is not measured yet, to plan time and to check fitness. It is never in a result, and
no figure has this rate."""

CarriedRate = Callable[[TopologySpec, tuple[str, ...], float], RateChoice]
"""Returns the rate that these engines carry on a topology if they share one, up to a highest rate in Mb/s."""
Pending = Callable[[Sequence[Job]], Sequence[Job]]
"""Returns the jobs that are still to run."""
Check = Callable[[Iterable[RunSpec]], Mapping[str, HostUnfitError]]
"""Returns the engines that cannot run these points here. Raises UsageError for points that no machine can."""


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
    retries: int | None = None
    """How often a suspect point may be run again (`retry_jobs`)."""
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
        lines = [
            f"not run: {counts[name]} points of engine {name}, because {error}. After that the same "
            "command runs them and keeps finished points"
            for name, error in self.unfit.items()
        ]
        for basis, error in self.refused.items():
            names = {
                point_name(spec)
                for each in self.plan.figures
                for spec in each.specs
                if each.rate_of(spec.topology).rate_mbps is None
                if rate_key(each.options.auto.basis(spec.topology)) == basis
            }
            lines.append(f"not run: {text.counted(len(names), 'point')}, because {error}")
        return lines


def engine_for(experiment: Experiment, options: Settings) -> Engine:
    """Return the requested engine, else those of the experiment's figures. Raises UsageError."""
    options = with_default_engines(experiment, options)
    each = (chosen["engine"] for figure in experiment.figures for chosen, _ in figure.variants(options))
    names = dict.fromkeys(name for names in each for name in names)
    return engines.make(*(names or options.get("engine") or ()))


def with_default_engines(experiment: Experiment, options: Settings) -> Settings:
    """Return `options` with engines, if it names none: root gets both kinds of hosts if figures have emulated
    variants."""
    if "engine" in options:
        return options
    if not any(figure.separate_variants and figure.emulated for figure in experiment.figures):
        return options
    return {**options, "engine": (SIMULATOR, ENGINE) if client.available() else (SIMULATOR,)}


def make_plan(
    experiment: Experiment,
    options: Settings,
    engine: Engine | None = None,
    stored: Iterable[PointResult] = (),
) -> Plan:
    """Return the plan as far as it is known without root; start nothing.

    `stored` are the points that a run would find. Without `engine`, that of the options. Raises UsageError.
    """
    here = ThisMachine(engine or engine_for(experiment, options))
    return _plan(experiment, options, here, here.known_rate, stored)


def checked_plan(
    experiment: Experiment,
    options: Settings,
    engine: Engine | None = None,
    stored: Iterable[PointResult] = (),
) -> Plan:
    """Return the plan of `make_plan` as a run would begin it: without the figures that an engine refuses.

    Raises UsageError where the run would. What this machine lacks is no error.
    """
    stored = tuple(stored)
    engine = engine or engine_for(experiment, options)
    plan = make_plan(experiment, options, engine, stored)
    pending = functools.partial(pending_jobs, stored=stored, force=False)
    return _without_refused(plan, pending, functools.partial(unfit_here, engine))[0]


def prepare(
    experiment: Experiment,
    options: Settings,
    machines: Machines,
    results: Path,
    force: bool,
    observer: Observer,
    retries: int | None = None,
) -> Session:
    """Check what is still to run, open the results folder, determine the link rates.

    Raises UsageError and HostUnfitError; then no point was started. A sweep with finished points continues at
    their rate, and a finished sweep needs nothing from the machine.
    """
    found = store.scan(results / experiment.folder)
    stored = found.points
    kept = () if force else stored
    pending = functools.partial(pending_jobs, stored=stored, force=force)
    plan = _plan(experiment, options, machines, machines.known_rate, kept)
    plan, unfit = _able(plan, pending, machines)
    opened = Store.open(results, experiment.folder)
    refused: dict[RateKey, HostUnfitError] = {}
    if _lacks_rates(plan):
        carried_rate = _measuring(machines, unfit, observer, refused)
        plan = _plan(experiment, options, machines, carried_rate, kept)
        plan, unfit = _able(plan, pending, machines)
    names = frozenset(job.name for job in pending(plan.jobs) if job.spec.engine in unfit)
    left, why = _retries(plan, stored, machines, retries)
    session = Session(plan, opened, found, unfit, names, left, refused)
    if not session.jobs and refused:
        raise next(iter(refused.values()))
    for job in session.jobs:  # no result may have the placeholder as its rate
        if job.rate.rate_mbps is None:
            raise RunError(
                f"planning {job.name}: its link rate is not known, a bug of refabric; give --rate MBPS"
            )
    for line in (
        *plan.setting_lines(),
        *plan.left_out(),
        *_uncoupled(plan, machines),
        *session.lacking,
        *why,
    ):
        observer.note(line)
    for each in plan.figures:
        if each.figure.name != experiment.folder:
            store.add_to_manifest(opened.directory, each.figure.name, each.names, opened.tag)
    return session


def _plan(
    experiment: Experiment,
    options: Settings,
    machines: Machines,
    carried_rate: CarriedRate,
    stored: Iterable[PointResult],
) -> Plan:
    """Return the plan. `carried_rate` is called once for each topology whose rate no finished point
    determines."""
    _check_options(experiment, options)
    chosen = with_default_engines(experiment, options)
    resolved: list[tuple[Figure, SweepOptions]] = []
    overridden = dict[str, Any]()
    for figure in experiment.figures:
        for own, defaults in figure.variants(chosen):
            overridden |= overriding(own, defaults)
            coupled_cc, _ = machines.coupled_cc(own["engine"])
            resolved += [(figure, sweep) for sweep in sweeps_of(own, defaults, coupled_cc)]
    rates = _begun_rates(resolved, stored)

    def rate_on(topology: TopologySpec, names: tuple[str, ...], highest_mbps: float) -> RateChoice:
        key = rate_key(topology), names
        if key not in rates:
            rates[key] = carried_rate(topology, names, highest_mbps)
        return rates[key]

    figures = tuple(_figure_plan(figure, sweep, rate_on) for figure, sweep in resolved)
    jobs = merged(
        jobs_of(each.specs, machines, each.rate_of, each.figure.cpu_bound, each.figure.relative)
        for each in figures
    )
    real = any(name in LINUX_HOSTS for name in chosen.get("engine", ()))
    lacking = [f.name for f in experiment.figures if real and f.has_variants and f.emulated is None]
    notes = (f"{', '.join(lacking)}: {NO_COUNTERPART}",) if lacking else ()
    if options != chosen and ENGINE not in (chosen.get("engine", ())):
        notes = (NOT_ROOT.format(name=experiment.name),)
    plan = Plan(jobs, figures, notes, _in_words(overridden, jobs))
    if not plan.jobs:
        raise UsageError("; ".join(plan.left_out()))
    return plan


def _in_words(settings: Settings, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return the settings, of which some points have each, as labels name them."""
    found = []
    for path, value in settings.items():
        having = (job.spec for job in jobs if operator.attrgetter(path)(job.spec) == value)
        found += [words_at(spec, path) for spec in itertools.islice(having, 1)]
    return tuple(dict.fromkeys(found))


def _check_options(experiment: Experiment, options: Settings) -> None:
    """Raise UsageError for an option that does not mean the same for all figures, and for networks that no
    figure takes. A figure with a network of its own, among others, ignores `--k`."""
    first = experiment.figures[0].name
    for option in map(option_name, options) if experiment.shared_options is not None else ():
        if option not in (experiment.shared_options or ()):
            name = option.replace("_", "-")
            if [figure.name for figure in experiment.figures] == [experiment.name]:
                raise UsageError(f"{experiment.name} fixes its own {name}: leave out --{name}")
            alone = ", ".join(figure.name for figure in experiment.figures)
            raise UsageError(
                f"--{name}: every figure of {experiment.name} has its own; give it to one of them: {alone}"
            )
    if "k" in options and not any(figure.sized for figure in experiment.figures):
        ks = ",".join(map(str, options["k"]))
        raise UsageError(f"--k {ks}: {first} has one network of its own; leave out --k")
    if "topology" not in options:
        return
    if "k" in options:
        raise UsageError("--k and --topology: both choose the networks; give one of them")
    takes = (f.topologies is fat_trees or "topology" in (f.options or ()) for f in experiment.figures)
    if not any(takes):
        raise UsageError(
            f"--topology: {first} has networks of its own; leave it out, or run "
            "cs244-one-to-one, which takes any"
        )


def _figure_plan(figure: Figure, options: SweepOptions, rate_on: CarriedRate) -> FigurePlan:
    if figure.cpu_bound and VIRTUAL_TIME.issuperset(options.engines):
        return FigurePlan(figure, options, (), {}, ())
    topologies = tuple(figure.topologies(options))
    rates: dict[RateKey, RateChoice] = {}
    for topology in topologies:
        if options.rate_mbps is not None:
            rates[rate_key(topology)] = fixed(options.rate_mbps)
        else:
            carried = rate_on(options.auto.basis(topology), options.engines, options.profile.highest_mbps)
            rates[rate_key(topology)] = options.auto.of(carried, topology)
    placeholder = PLACEHOLDER_MBPS * options.auto.overload
    specs = figure.points(options, lambda t: rates[rate_key(t)].rate_mbps or placeholder)
    unknown = {key for key, choice in rates.items() if choice.rate_mbps is None}
    fitted = (s if rate_key(s.topology) in unknown else long_enough(s, options.growing) for s in specs)
    return FigurePlan(figure, options, topologies, rates, tuple(fitted))


def _begun_rates(
    resolved: Iterable[tuple[Figure, SweepOptions]], stored: Iterable[PointResult]
) -> dict[tuple[RateKey, tuple[str, ...]], RateChoice]:
    """Return, by topology and engines that share a rate, the rate at which the newest finished point of these
    figures ran. Names of points contain the rate, so a sweep continues at it. Only rates of `auto` count."""
    by_rate: dict[float, dict[str, PointResult]] = {}
    for entry in stored:
        if entry.finished and entry.rate_choice.startswith("auto"):
            by_rate.setdefault(entry.spec.link.rate_mbps, {})[entry.name] = entry
    newest: dict[tuple[RateKey, tuple[str, ...]], tuple[str, float]] = {}
    for figure, options in resolved:
        if options.rate_mbps is not None or not engines.real_time(options.engines):
            continue
        for rate_mbps, entries in by_rate.items():
            specs = figure.points(options, lambda _topology, mbps=rate_mbps: mbps)  # type: ignore[misc]
            names = {point_name(long_enough(spec, options.growing)): spec.topology for spec in specs}
            for name in names.keys() & entries.keys():
                shared = rate_key(options.auto.basis(names[name])), options.engines
                at = entries[name].attempts[-1].started_at
                ran = at, rate_mbps / options.auto.overload
                newest[shared] = max(newest.get(shared, ("", 0.0)), ran)
    return {
        shared: RateChoice(carried_mbps, BEGUN, begun=True) for shared, (_, carried_mbps) in newest.items()
    }


def _able(plan: Plan, pending: Pending, machines: Machines) -> tuple[Plan, Mapping[str, HostUnfitError]]:
    """Return the plan without figures that an engine refuses, and the engines that cannot run their pending
    points on these machines, and why.

    Raises UsageError, and HostUnfitError if that leaves none of the plan's engines.
    """
    able, unfit = _without_refused(plan, pending, machines.unfit)
    if unfit and unfit.keys() == {job.spec.engine for job in able.jobs}:
        raise next(iter(unfit.values()))
    return able, unfit


def _without_refused(plan: Plan, pending: Pending, check: Check) -> tuple[Plan, Mapping[str, HostUnfitError]]:
    """Return the plan without figures that an engine refuses, and the engines unfit for the rest here.

    Each figure that is left out has a line with the reason among the plan's notes. Raises UsageError if
    nothing is left, or if the plan has one figure.
    """
    to_run = pending(plan.jobs)
    try:
        return plan, check(job.spec for job in to_run)
    except UsageError:
        if len({each.figure.name for each in plan.figures}) == 1:
            raise
        kept: list[FigurePlan] = []
        notes = list(plan.notes)
        for each in plan.figures:
            refused: set[str] = set()
            for engine in dict.fromkeys(spec.engine for spec in each.specs):
                try:
                    check(j.spec for j in to_run if j.name in each.names and j.spec.engine == engine)
                except UsageError as error:
                    refused.add(engine)
                    notes.append(f"{each.figure.name}: not run in {engine}: {error}")
            left = tuple(spec for spec in each.specs if spec.engine not in refused)
            if left or not refused:
                kept.append(dataclasses.replace(each, specs=left))
        names = frozenset().union(*(each.names for each in kept))
        jobs = [job for job in plan.jobs if job.name in names]
        if not jobs:
            raise
    rest = dataclasses.replace(plan, jobs=jobs, figures=tuple(kept), notes=tuple(notes))
    return rest, check(job.spec for job in pending(rest.jobs))


def _lacks_rates(plan: Plan) -> bool:
    """Return whether a rate is still to be measured or to be checked again."""
    return any(
        not choice.begun
        for each in plan.figures
        if each.options.rate_mbps is None and engines.real_time(each.options.engines)
        for choice in each.rates.values()
    )


def _measuring(
    machines: Machines,
    unfit: Mapping[str, HostUnfitError],
    observer: Observer,
    refused: dict[RateKey, HostUnfitError],
) -> CarriedRate:
    """Return a function that determines what these machines carry.

    If the engine that would measure the rate cannot run, the known rate is used, or any rate. A network of
    which the machine carries nothing is added to `refused` and has no rate.
    """

    def carried(topology: TopologySpec, names: tuple[str, ...], highest_mbps: float) -> RateChoice:
        if not unfit.keys().isdisjoint(names):
            known = machines.known_rate(topology, names, highest_mbps)
            return RateChoice(UNMEASURED_MBPS, UNMEASURED) if known.rate_mbps is None else known
        try:
            return machines.rate(topology, names, observer, highest_mbps)
        except HostUnfitError as error:
            refused[rate_key(topology)] = error
            return RateChoice(None, NOT_CARRIED)

    return carried


def _retries(
    plan: Plan, stored: tuple[PointResult, ...], machines: Machines, retries: int | None
) -> tuple[int | None, list[str]]:
    """Return how often suspect points may be run again: never if the machines cannot run them."""
    again = retry_jobs(plan.jobs, stored, retries)
    unfit = machines.unfit(job.spec for job in again)
    count = len(again)
    lines = [f"{text.counted(count, 'suspect point')} not run again: {error}" for error in unfit.values()]
    return None if unfit else retries, lines


def _uncoupled(plan: Plan, machines: Machines) -> list[str]:
    """Return a line if MPTCP runs uncoupled because the machine does not support coupling, in a figure that
    compares no others."""
    name, why = machines.coupled_cc(tuple(dict.fromkeys(job.spec.engine for job in plan.jobs)))
    fell_back = any(
        {spec.transport.cc for spec in each.specs if spec.transport.subflows > 1} == {name}
        for each in plan.figures
        if not each.options.ccs
    )
    return [f"MPTCP runs {name}, uncoupled: {why}"] if why and fell_back else []
