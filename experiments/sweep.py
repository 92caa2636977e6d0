"""The sweep: which points, in which order, for how long; as many at a time as the engine bears; what is
finished stays finished."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engines.dispatch import only, runs, waves
from engines.engine import Engine, Observer
from engines.provenance import free_memory_mb
from engines.result import Status
from engines.spec import RunSpec, TopologySpec
from experiments import store, summary
from experiments.point import Done, Order, carry_out
from experiments.rate import UNTOLD, RateChoice
from experiments.reference import reference_of
from experiments.store import Entry, Store, StoredPoint, point_name
from experiments.workers import Noted, Started, Workers


@dataclass(frozen=True)
class Job:
    """A point of the plan and the wall time it is expected to take."""

    spec: RunSpec
    expected_s: float
    rate: RateChoice = UNTOLD
    """How the link rate was come by, kept with the result; the spec's is a placeholder where it has none."""
    cpu_bound: bool = False
    """Whether it asks for more than the machine carries, on purpose (`Figure.cpu_bound`)."""
    at_once: int = 1
    """How many such points run side by side."""

    @property
    def name(self) -> str:
        return point_name(self.spec)


@dataclass(frozen=True)
class Place:
    """Where the sweep is: job `index` (from 1) of `total` still to run; `eta_s` until all are done."""

    index: int
    total: int
    eta_s: float


class Progress(Observer, Protocol):
    """Told how a sweep is getting on, and, as Observer, how its points are."""

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        """The sweep has these points, of which `pending` are to run."""

    def start(self, job: Job, place: Place) -> None:
        """A point begins."""

    def finish(self, judged: summary.Judged, place: Place) -> None:
        """A point is stored."""

    def end(self) -> None:
        """The sweep is over, however it ended."""


@dataclass(frozen=True)
class Outcome:
    """Every stored point of the plan, in plan order, and how the sweep ended."""

    points: tuple[summary.Judged, ...]
    planned: int
    failures: tuple[str, ...]
    """Points that failed while an earlier, finished result of theirs was kept (`--force`)."""
    interrupted: bool

    @property
    def exit_code(self) -> int:
        """0 all ok or suspect as intended, 1 some failed, suspect or missing, 130 interrupted."""
        if self.interrupted:
            return 130
        good = sum(judged.status is Status.OK or judged.as_intended for judged in self.points)
        return 0 if good == self.planned and not self.failures else 1


def plan(
    specs: Iterable[RunSpec],
    engine: Engine,
    rate_of: Callable[[TopologySpec], RateChoice] = lambda _topology: UNTOLD,
    cpu_bound: bool = False,
    relative: bool = True,
) -> list[Job]:
    """The specs' references where goodput is told relative to them, then the specs, each once, with all
    sampling asked for and expected seconds.

    `rate_of` says how a topology's link rate was come by.
    """
    specs = list(specs)
    expected_s: dict[str, float] = {}

    def job(spec: RunSpec, topology: TopologySpec) -> Job:
        key = spec.content_hash()
        if key not in expected_s:
            expected_s[key] = engine.expected_s(spec)
        beside = only(engine, {spec.engine}).parallel
        return Job(spec, expected_s[key], rate_of(topology), cpu_bound, beside)

    references = [job(reference_of(spec), spec.topology) for spec in specs] if relative else []
    return merged([references, [job(spec, spec.topology) for spec in specs]])


def merged(plans: Iterable[Sequence[Job]]) -> list[Job]:
    """The jobs of several plans in turn, each once, with all sampling asked for.

    A job is CPU-bound on purpose only where every plan means it to be.
    """
    once: dict[str, Job] = {}
    for job in itertools.chain.from_iterable(plans):
        earlier = once.setdefault(job.name, job)
        sampling = earlier.spec.sampling.joined(job.spec.sampling)
        once[job.name] = dataclasses.replace(
            earlier,
            spec=dataclasses.replace(earlier.spec, sampling=sampling),
            cpu_bound=earlier.cpu_bound and job.cpu_bound,
        )
    return list(once.values())


def pending_jobs(jobs: Sequence[Job], stored: Iterable[Entry], force: bool) -> list[Job]:
    """The jobs still to run: those not finished, or finished with less sampling; or all of them by force."""
    finished = {} if force else {entry.name: entry.sampling for entry in stored if entry.finished}
    return [
        job for job in jobs if job.name not in finished or not finished[job.name].covers(job.spec.sampling)
    ]


def wall_s(jobs: Iterable[Job]) -> float:
    """Seconds that all of them are expected to take, side by side where they may be."""
    waves: dict[int, list[float]] = {}
    for job in jobs:
        waves.setdefault(job.at_once, []).append(job.expected_s)
    return sum(max(sum(expected) / at_once, *expected) for at_once, expected in waves.items())


def remaining_s(pending: Sequence[Job], observed: Sequence[tuple[float, float]]) -> float:
    """Seconds `pending` will take: expected, corrected by (expected, observed) seconds of finished jobs."""
    expected = wall_s(pending)
    planned = sum(pair[0] for pair in observed)
    return expected * sum(pair[1] for pair in observed) / planned if planned > 0 else expected


def too_large_together(needs_mb: Sequence[float], at_once: int, free_mb: float) -> str:
    """What to say where the largest `at_once` points do not fit into memory together; empty where they do."""
    largest = sorted(needs_mb, reverse=True)[:at_once]
    if sum(largest) <= free_mb:
        return ""
    fit = sum(total <= free_mb for total in itertools.accumulate(largest))
    return (
        f"points take up to {largest[0]:.0f} MB and {free_mb:.0f} MB are free: no more than "
        f"{max(1, fit)} of the largest run at once, instead of {at_once}"
    )


def run(
    jobs: Sequence[Job], engine: Engine, where: Store, progress: Progress, force: bool = False
) -> Outcome:
    """Run what is pending and keep every finished point; Ctrl-C ends it in order.

    A point that fails is stored as failed and the sweep goes on. Raises StoreError when results
    cannot be kept and HostUnfitError when the machine turns out unfit: going on would be in vain.
    """
    return _Sweep(list(jobs), engine, where, progress, force).run()


class _Sweep:
    """State of one sweep: what is stored, how long points took, what failed beside a kept result."""

    def __init__(
        self, jobs: list[Job], engine: Engine, where: Store, progress: Progress, force: bool
    ) -> None:
        self.jobs, self.engine, self.store, self.progress = jobs, engine, where, progress
        self.force = force
        self.cpu_bound = {job.name for job in jobs if job.cpu_bound}
        self.stored: dict[str, StoredPoint] = {}
        self.observed: list[tuple[float, float]] = []
        self.left: list[Job] = []
        self.later: list[Job] = []
        self.begun = self.total = 0
        self.failures: list[str] = []

    def run(self) -> Outcome:
        self._rescan(tell=True)
        pending = pending_jobs(self.jobs, (point.entry for point in self.stored.values()), self.force)
        interrupted = False
        self.progress.begin(self.jobs, pending)
        try:
            self._all(pending)
        except KeyboardInterrupt:
            interrupted = True
            self.store.clean_up()
            self._rescan(tell=False)  # it may have come between a point's renaming and its summary
        finally:
            self.progress.end()
        judged = {j.point.name: j for j in summary.judge(self.stored.values(), self.cpu_bound)}
        points = tuple(judged[job.name] for job in self.jobs if job.name in judged)
        return Outcome(points, len(self.jobs), tuple(self.failures), interrupted)

    def _rescan(self, tell: bool) -> None:
        found = store.scan(self.store.directory)
        self.stored = {point.name: point for point in found.points}
        if tell:
            for error in found.broken:
                self.progress.note(str(error))
        if self.stored:
            summary.write(self.store, list(self.stored.values()))

    def _all(self, pending: Sequence[Job]) -> None:
        """What may share the machine first: what wants it to itself then has it."""
        self.total, self.later = len(pending), list(pending)
        for engine in waves(self.engine):
            names = {job.name for job in self.later if runs(engine, job.spec.engine)}
            self.left = [job for job in self.later if job.name in names]
            self.later = [job for job in self.later if job.name not in names]
            self.observed = []
            count = min(engine.parallel, len(self.left))
            if count > 1:
                self._at_once(engine, tuple(self.left), count)
            else:
                self._in_turn(engine, tuple(self.left))

    def _in_turn(self, engine: Engine, pending: Sequence[Job]) -> None:
        for job in pending:
            place = self._begin(job)
            done = carry_out(self._order(job), engine, self.store, self.progress)
            self._finish(job, done, place)

    def _at_once(self, engine: Engine, pending: Sequence[Job], count: int) -> None:
        """Several points at a time, each in a process of its own; started in their order."""
        jobs = {point_name(job.spec): job for job in pending}
        places: dict[str, Place] = {}
        free_mb = free_memory_mb()
        if text := too_large_together([engine.memory_mb(job.spec) for job in pending], count, free_mb):
            self.progress.note(text)
        with Workers(count, engine, self.store, free_mb) as workers:
            for told in workers.run(self._order(job) for job in pending):
                job = jobs[point_name(told.order.spec)]
                if isinstance(told, Started):
                    places[job.name] = self._begin(job)
                elif isinstance(told, Noted):
                    self.progress.note(f"{job.name}: {told.text}")
                else:
                    self._finish(job, told.done, places[job.name])

    def _begin(self, job: Job) -> Place:
        self.begun += 1
        place = Place(self.begun, self.total, self._eta_s())
        self.progress.start(job, place)
        return place

    def _eta_s(self) -> float:
        return remaining_s(self.left, self.observed) + wall_s(self.later)

    def _order(self, job: Job) -> Order:
        earlier = self.stored.get(job.name)
        return Order(job.spec, job.rate.how, earlier is not None and earlier.finished)

    def _finish(self, job: Job, done: Done, place: Place) -> None:
        self.left.remove(job)
        self.observed.append((job.expected_s, done.elapsed_s))
        if done.point is None:
            self.failures.append(job.name)
            self.progress.note(f"{job.name} failed ({'; '.join(done.reasons)}); its earlier result is kept")
        else:
            self.stored[job.name] = done.point
        summary.write(self.store, list(self.stored.values()))
        now = summary.judge(self.stored.values(), self.cpu_bound)
        judged = next(j for j in now if j.point.name == job.name)
        self.progress.finish(judged, dataclasses.replace(place, eta_s=self._eta_s()))
