"""The plan of a sweep: its points as jobs with expected wall times, and which are still to run. Pure."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engines import registry as engines
from harness import labels
from harness.baseline import baseline_of, is_baseline
from harness.experiment import Figure
from harness.options.options import SweepOptions
from harness.options.rates import UNKNOWN_RATE, RateChoice, RateKey, cut_durations, rate_key
from harness.plan.machines import Machines
from harness.results.point_results import PointResult
from harness.results.store import point_name
from model.spec import RunSpec, TopologySpec

NO_CPU_TO_SATURATE = "the effects of an overloaded machine show only in real time (--engine mininet)"
NO_LINUX_HOSTS = "its hosts are simulated; leave --engine out"
NOT_ITS_ENGINES = "it has no points for these engines; leave --engine out"
PRIOR = 0.1
"""Weight of the expected times of remaining jobs beside observed times."""
BASELINE_RETRIES = 2
"""All percentages depend on the baseline, and it takes only seconds: at most three attempts."""


@dataclass(frozen=True)
class Job:
    """A point of the plan. `estimate` returns its expected wall time in s; it may draw all flows for that."""

    spec: RunSpec
    estimate: Callable[[], float] = field(compare=False)
    rate: RateChoice = UNKNOWN_RATE
    """How the link rate was chosen, stored with the result. If it is unknown, the spec has a placeholder."""
    cpu_bound: bool = False
    """Whether it overloads the machine on purpose (`Figure.cpu_bound`)."""
    at_once: int = 1
    """How many such points run side by side."""

    @functools.cached_property
    def name(self) -> str:
        return point_name(self.spec)

    @functools.cached_property
    def expected_s(self) -> float:
        """The expected wall time. It is estimated when it is asked for: finished points need none."""
        return self.estimate()


@dataclass(frozen=True)
class FigurePlan:
    """A figure, or one of its variants, with its options, its points, and the link rate of each topology."""

    figure: Figure
    options: SweepOptions
    topologies: tuple[TopologySpec, ...]
    rates: Mapping[RateKey, RateChoice]
    specs: tuple[RunSpec, ...]

    @property
    def certain(self) -> bool:
        """Whether every rate is known. If not, names and hashes of its points are not final."""
        return all(choice.rate_mbps is not None for choice in self.rates.values())

    def rate_of(self, topology: TopologySpec) -> RateChoice:
        return self.rates[rate_key(topology)]

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of its points and of the baselines that it runs."""
        baselines = map(baseline_of, self.specs if self.figure.relative else ())
        return frozenset(map(point_name, (*self.specs, *baselines)))


@dataclass(frozen=True)
class Plan:
    """The jobs of an experiment, each once, and the plans of its figures."""

    jobs: list[Job]
    figures: tuple[FigurePlan, ...]
    notes: tuple[str, ...] = ()
    """Lines for the user on what is not run."""
    overrides: tuple[str, ...] = ()
    """What all points have instead of the settings of their figures, in words."""

    @property
    def certain(self) -> bool:
        """Whether the rates of all figures are known."""
        return all(each.certain for each in self.figures)

    def of(self, figure: Figure) -> list[FigurePlan]:
        """Return the plans of the variants of a figure."""
        return [each for each in self.figures if each.figure is figure]

    def setting_lines(self) -> list[str]:
        """Return one line for each rate and reason, `link rate at k=4; k=8: 10 Mb/s (fixed)`, and one for the
        settings that are not the figure's.

        A network without points has none, as k=48 of a figure that leaves it out.
        """
        alike: dict[str, list[str]] = {}
        for each in self.figures:
            for topology in each.topologies:
                if any(spec.topology == topology for spec in each.specs):
                    choice = each.rate_of(topology)
                    how = choice.how
                    if choice.rate_mbps is not None:
                        how = f"{choice.rate_mbps:g} Mb/s ({how})"
                    alike.setdefault(how, []).append(labels.named(topology))
        lines = [f"link rate at {'; '.join(dict.fromkeys(nets))}: {how}" for how, nets in alike.items()]
        return [*lines, *([labels.overriding(self.overrides).lstrip("; ")] if self.overrides else [])]

    def left_out(self) -> list[str]:
        """Return lines on figures that an engine cannot show, and on windows that were shortened."""
        idle: dict[str, list[str]] = {}
        capped: list[str] = []
        for each in self.figures:
            if not each.specs:
                linux = any(name in engines.LINUX_HOSTS for name in each.options.engines)
                why = NO_LINUX_HOSTS if linux else NOT_ITS_ENGINES
                why = NO_CPU_TO_SATURATE if each.figure.cpu_bound else why
                idle.setdefault(why, []).append(each.figure.name)
            rated = [spec for spec in each.specs if each.rate_of(spec.topology).rate_mbps is not None]
            capped += cut_durations(rated, each.options.growing)
        lines = [f"{', '.join(dict.fromkeys(names))}: {why}" for why, names in idle.items()]
        return [*lines, *self.notes, *dict.fromkeys(capped)]


def jobs_of(
    specs: Iterable[RunSpec],
    machines: Machines,
    rate_of: Callable[[TopologySpec], RateChoice] = lambda _topology: UNKNOWN_RATE,
    cpu_bound: bool = False,
    relative: bool = True,
) -> list[Job]:
    """Return the jobs of `specs`, each once, with expected seconds and all sampling that any spec asks for.

    If goodput is relative to a baseline, the baselines come first. `rate_of` says how a topology's link rate
    was chosen.
    """
    estimated: dict[str, float] = {}

    def estimate(spec: RunSpec) -> float:
        key = spec.content_hash()
        if key not in estimated:
            estimated[key] = machines.engine.expected_s(spec)
        return estimated[key]

    def job(spec: RunSpec, topology: TopologySpec) -> Job:
        expected_s = functools.partial(estimate, spec)
        return Job(spec, expected_s, rate_of(topology), cpu_bound, machines.at_once(spec))

    jobs, baselines = [], []
    for spec in specs:  # a point beside its baseline: both are on one network, which is then built once
        if relative:
            baselines.append(job(baseline_of(spec), spec.topology))
        jobs.append(job(spec, spec.topology))
    return merged([baselines, jobs])


def merged(plans: Iterable[Sequence[Job]]) -> list[Job]:
    """Return the jobs of several plans in their order, each once, with all sampling that any plan asks for.

    A job is CPU-bound on purpose only if it is so in every plan.
    """
    by_name: dict[str, Job] = {}
    for job in itertools.chain.from_iterable(plans):
        earlier = by_name.setdefault(job.name, job)
        if earlier is job:
            continue
        spec, sampling = earlier.spec, earlier.spec.sampling.joined(job.spec.sampling)
        if sampling != spec.sampling:
            spec = dataclasses.replace(spec, sampling=sampling)
        cpu_bound = earlier.cpu_bound and job.cpu_bound
        by_name[job.name] = dataclasses.replace(earlier, spec=spec, cpu_bound=cpu_bound)
    return list(by_name.values())


def pending_jobs(jobs: Sequence[Job], stored: Iterable[PointResult], force: bool) -> list[Job]:
    """Return the jobs that are not finished, or finished with less sampling; with `force` all of them."""
    finished = {} if force else {entry.name: entry.spec.sampling for entry in stored if entry.finished}
    return [
        job for job in jobs if job.name not in finished or not finished[job.name].covers(job.spec.sampling)
    ]


def retry_jobs(jobs: Sequence[Job], stored: Iterable[PointResult], retries: int | None) -> list[Job]:
    """Return the finished jobs that only the machine makes suspect and that have retries left.

    Each point has as many `retries`, and baselines have at least BASELINE_RETRIES; None is none at all.
    Points that overload the machine on purpose are suspect as intended and not retried; their baselines are.
    """
    if retries is None:
        return []
    attempts = {entry.name: entry.machine_attempts for entry in stored if entry.finished}

    def allowed(job: Job) -> int:
        if is_baseline(job.spec):
            return max(retries, BASELINE_RETRIES)
        return 0 if job.cpu_bound else retries

    return [job for job in jobs if 0 < attempts.get(job.name, 0) <= allowed(job)]


def to_run(jobs: Sequence[Job], stored: Iterable[PointResult], force: bool, retries: int | None) -> list[Job]:
    """Return the pending jobs and the jobs to retry, in plan order."""
    stored = list(stored)
    wanted = [*pending_jobs(jobs, stored, force), *retry_jobs(jobs, stored, retries)]
    names = {job.name for job in wanted}
    return [job for job in jobs if job.name in names]


def wall_s(jobs: Iterable[Job]) -> float:
    """Return the expected wall time of the jobs in s, with those that run side by side counted as such."""
    waves = ((at_once, [job.expected_s for job in wave]) for at_once, wave in waves_of(jobs))
    return sum(max(sum(expected) / at_once, *expected) for at_once, expected in waves)


def waves_of(jobs: Iterable[Job]) -> Iterable[tuple[int, list[Job]]]:
    """Group the jobs by how many run side by side."""
    waves: dict[int, list[Job]] = {}
    for job in jobs:
        waves.setdefault(job.at_once, []).append(job)
    return waves.items()


def remaining_s(pending: Sequence[Job], observed: Sequence[tuple[float, float]]) -> float:
    """Return the seconds that `pending` will take: expected ones, scaled by observed / expected seconds of
    finished jobs.

    Short jobs say little of long ones, so a tenth of what remains counts as if it had been observed to take
    as long as expected.
    """
    expected = wall_s(pending)
    prior = PRIOR * expected
    if not prior:
        return expected
    return expected * (prior + sum(o for _, o in observed)) / (prior + sum(e for e, _ in observed))
