"""The sweep: which points, in which order, for how long; as many at a time as the crew carries out; what is
finished stays finished."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engines.dispatch import only
from engines.engine import Engine, Observer
from engines.result import Status
from engines.spec import RunSpec, TopologySpec
from experiments import store, summary
from experiments.crew import Crew, Noted, Started
from experiments.point import Done, Order
from experiments.rate import UNTOLD, RateChoice
from experiments.reference import reference_of
from experiments.store import Entry, Store, StoredPoint, point_name


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
    """Where the sweep is: job `index` (from 1) of `total` still to run; `eta_s` until all are done. `worker`
    is who has the job, if not this machine."""

    index: int
    total: int
    eta_s: float
    worker: str = ""


MakeCrew = Callable[[Store, Observer], Crew]
"""A crew whose results go into that store; it may tell the observer what to expect."""


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
    waves = ((at_once, [job.expected_s for job in wave]) for at_once, wave in _waves(jobs))
    return sum(max(sum(expected) / at_once, *expected) for at_once, expected in waves)


def _waves(jobs: Iterable[Job]) -> Iterable[tuple[int, list[Job]]]:
    """The jobs by how many run side by side."""
    waves: dict[int, list[Job]] = {}
    for job in jobs:
        waves.setdefault(job.at_once, []).append(job)
    return waves.items()


def _longest_first(jobs: Sequence[Job]) -> list[Job]:
    """Of those that run side by side: a long one begun last has the machine's other cores wait for it."""
    return sorted(jobs, key=lambda job: -job.expected_s if job.at_once > 1 else 0.0)


def remaining_s(pending: Sequence[Job], observed: Sequence[tuple[float, float]]) -> float:
    """Seconds `pending` will take: expected, corrected by (expected, observed) seconds of finished jobs."""
    expected = wall_s(pending)
    planned = sum(pair[0] for pair in observed)
    return expected * sum(pair[1] for pair in observed) / planned if planned > 0 else expected


def run(
    jobs: Sequence[Job], crew: MakeCrew, where: Store, progress: Progress, force: bool = False
) -> Outcome:
    """Run what is pending and keep every finished point; Ctrl-C ends it in order.

    A point that fails is stored as failed and the sweep goes on. Raises StoreError when results
    cannot be kept, HostUnfitError when the machine turns out unfit, RunError when nobody is left to run
    points: going on would be in vain.
    """
    return _Sweep(list(jobs), crew, where, progress, force).run()


class _Sweep:
    """State of one sweep: what is stored, how long points took, what failed beside a kept result."""

    def __init__(
        self, jobs: list[Job], crew: MakeCrew, where: Store, progress: Progress, force: bool
    ) -> None:
        self.jobs, self.crew, self.store, self.progress = jobs, crew, where, progress
        self.force = force
        self.cpu_bound = {job.name for job in jobs if job.cpu_bound}
        self.stored: dict[str, StoredPoint] = {}
        self.observed: dict[int, list[tuple[float, float]]] = {}
        """(expected, observed) seconds of finished jobs, by how many ran side by side."""
        self.left: list[Job] = []
        self.begun = self.total = 0
        self.failures: list[str] = []

    def run(self) -> Outcome:
        self._rescan(tell=True)
        pending = pending_jobs(self.jobs, (point.entry for point in self.stored.values()), self.force)
        interrupted = False
        self.progress.begin(self.jobs, pending)
        try:
            if pending:
                self._carry_out(pending)
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

    def _carry_out(self, pending: Sequence[Job]) -> None:
        self.total, self.left = len(pending), list(pending)
        jobs = {job.name: job for job in pending}
        places: dict[str, Place] = {}
        with self.crew(self.store, self.progress) as crew:
            for told in crew.run(self._order(job) for job in _longest_first(pending)):
                job = jobs[point_name(told.order.spec)]
                if isinstance(told, Started):
                    self.begun += 1
                    places[job.name] = Place(self.begun, self.total, self._eta_s(), told.worker)
                    self.progress.start(job, places[job.name])
                elif isinstance(told, Noted):
                    self.progress.note(f"{job.name}: {told.text}")
                else:
                    self._finish(job, told.done, places[job.name])

    def _eta_s(self) -> float:
        return sum(remaining_s(jobs, self.observed.get(at_once, ())) for at_once, jobs in _waves(self.left))

    def _order(self, job: Job) -> Order:
        earlier = self.stored.get(job.name)
        return Order(job.spec, job.rate.how, earlier is not None and earlier.finished)

    def _finish(self, job: Job, done: Done, place: Place) -> None:
        self.left.remove(job)
        self.observed.setdefault(job.at_once, []).append((job.expected_s, done.elapsed_s))
        if done.point is None:
            self.failures.append(job.name)
            self.progress.note(f"{job.name} failed ({'; '.join(done.reasons)}); its earlier result is kept")
        else:
            self.stored[job.name] = done.point
        summary.write(self.store, list(self.stored.values()))
        now = summary.judge(self.stored.values(), self.cpu_bound)
        judged = next(j for j in now if j.point.name == job.name)
        self.progress.finish(judged, dataclasses.replace(place, eta_s=self._eta_s()))
