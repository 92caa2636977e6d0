"""The jobs of a plan: its points with their expected wall time, and those that are still to run. Pure."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from engines.dispatch import only
from engines.engine import Engine
from harness.options.profiles import Retries
from harness.options.rates import UNTOLD, RateChoice
from harness.points.baseline import baseline_of, is_baseline
from harness.results.store import StoredPoint, point_name
from model.spec import RunSpec, TopologySpec

PRIOR = 0.1
"""Weight of the expected times of remaining jobs beside observed times."""


@dataclass(frozen=True)
class Job:
    """A point of the plan. `estimate` returns its expected wall time in s; it may draw all flows for that."""

    spec: RunSpec
    estimate: Callable[[], float] = field(compare=False)
    rate: RateChoice = UNTOLD
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


def jobs_of(
    specs: Iterable[RunSpec],
    engine: Engine,
    rate_of: Callable[[TopologySpec], RateChoice] = lambda _topology: UNTOLD,
    cpu_bound: bool = False,
    relative: bool = True,
) -> list[Job]:
    """Return the jobs of `specs`, each once, with expected seconds and all sampling that any spec asks for.

    If goodput is relative to a baseline, the baselines come first. `rate_of` says how a topology's link rate
    was chosen.
    """
    specs = list(specs)
    estimated: dict[str, float] = {}

    def estimate(spec: RunSpec) -> float:
        key = spec.content_hash()
        if key not in estimated:
            estimated[key] = engine.expected_s(spec)
        return estimated[key]

    def job(spec: RunSpec, topology: TopologySpec) -> Job:
        at_once = max(1, only(engine, {spec.engine}).parallel // engine.cpus(spec))
        return Job(spec, functools.partial(estimate, spec), rate_of(topology), cpu_bound, at_once)

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
    once: dict[str, Job] = {}
    for job in itertools.chain.from_iterable(plans):
        earlier = once.setdefault(job.name, job)
        if earlier is not job:
            once[job.name] = _joined(earlier, job)
    return list(once.values())


def _joined(earlier: Job, job: Job) -> Job:
    sampling = earlier.spec.sampling.joined(job.spec.sampling)
    same = sampling == earlier.spec.sampling
    spec = earlier.spec if same else dataclasses.replace(earlier.spec, sampling=sampling)
    return dataclasses.replace(earlier, spec=spec, cpu_bound=earlier.cpu_bound and job.cpu_bound)


def pending_jobs(jobs: Sequence[Job], stored: Iterable[StoredPoint], force: bool) -> list[Job]:
    """Return the jobs that are not finished, or finished with less sampling; with `force` all of them."""
    finished = {} if force else {entry.name: entry.spec.sampling for entry in stored if entry.finished}
    return [
        job for job in jobs if job.name not in finished or not finished[job.name].covers(job.spec.sampling)
    ]


def retry_jobs(jobs: Sequence[Job], stored: Iterable[StoredPoint], retries: Retries) -> list[Job]:
    """Return the finished jobs that only the machine makes suspect and that have retries left.

    Points that overload the machine on purpose are suspect as intended and not retried; their baselines are.
    """
    attempts = {entry.name: entry.machine_attempts for entry in stored if entry.finished}

    def allowed(job: Job) -> int:
        if is_baseline(job.spec):
            return retries.baselines
        return 0 if job.cpu_bound else retries.points

    return [job for job in jobs if 0 < attempts.get(job.name, 0) <= allowed(job)]


def to_run(jobs: Sequence[Job], stored: Iterable[StoredPoint], force: bool, retries: Retries) -> list[Job]:
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
