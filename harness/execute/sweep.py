"""The sweep: which points, in which order, for how long; as many at a time as the crew carries out; what is
finished stays finished.

Points that only the machine makes suspect are run again after all others, a limited number of times
(attempts.py)."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from common.grammar import are, points
from engines.dispatch import only
from engines.engine import Engine, Observer
from harness.execute.attempts import NO_RETRIES, Retries
from harness.execute.executor import Crew, Noted, Started
from harness.execute.point import Done, Order
from harness.plan.baseline import is_reference, reference_of
from harness.plan.rate import UNTOLD, RateChoice
from harness.results import columns, store, summary
from harness.results.store import Entry, Store, StoredPoint, point_name
from model.reasons import texts
from model.result import Status
from model.spec import RunSpec, TopologySpec


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
    """Where the sweep is: run `index` (from 1) of `total` still to do, retries included; `eta_s` until all
    are done. `worker` is who has the job, if not this machine. `attempt` counts the runs of this point;
    `again` says that another one follows."""

    index: int
    total: int
    eta_s: float
    worker: str = ""
    attempt: int = 1
    again: bool = False


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


def retry_jobs(jobs: Sequence[Job], stored: Iterable[Entry], retries: Retries) -> list[Job]:
    """The finished jobs of which another attempt is of use, and that were not retried so often yet.

    Points that overload the machine on purpose are suspect as intended, and not among them; their baselines
    are.
    """
    attempts = {entry.name: entry.machine_attempts for entry in stored if entry.finished}

    def allowed(job: Job) -> int:
        if is_reference(job.spec):
            return retries.baselines
        return 0 if job.cpu_bound else retries.points

    return [job for job in jobs if 0 < attempts.get(job.name, 0) <= allowed(job)]


def to_run(jobs: Sequence[Job], stored: Iterable[Entry], force: bool, retries: Retries) -> list[Job]:
    """The jobs still to run, in plan order: those pending and those to retry."""
    stored = list(stored)
    wanted = [*pending_jobs(jobs, stored, force), *retry_jobs(jobs, stored, retries)]
    names = {job.name for job in wanted}
    return [job for job in jobs if job.name in names]


def _suspects(jobs: Sequence[Job], stored: Sequence[Entry]) -> str:
    """What would run finished points once more that the machine made suspect; empty without any."""
    names = {job.name for job in retry_jobs(jobs, stored, Retries(sys.maxsize, sys.maxsize))}
    if not names:
        return ""
    tries = max(entry.machine_attempts for entry in stored if entry.name in names)
    return (
        f"{points(len(names))} {are(len(names))} suspect: --retry-suspect {tries} runs "
        f"{'it' if len(names) == 1 else 'them'} once more"
    )


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
    """Of those that run side by side, baselines, which all percentages wait for, then long ones: a long one
    begun last has the machine's other cores wait for it."""

    def order(job: Job) -> tuple[bool, float]:
        return not is_reference(job.spec), -job.expected_s

    return sorted(jobs, key=lambda job: order(job) if job.at_once > 1 else (False, 0.0))


def remaining_s(pending: Sequence[Job], observed: Sequence[tuple[float, float]]) -> float:
    """Seconds `pending` will take: expected, corrected by (expected, observed) seconds of finished jobs."""
    expected = wall_s(pending)
    planned = sum(pair[0] for pair in observed)
    return expected * sum(pair[1] for pair in observed) / planned if planned > 0 else expected


def run(
    jobs: Sequence[Job],
    crew: MakeCrew,
    where: Store,
    progress: Progress,
    force: bool = False,
    retries: Retries = NO_RETRIES,
) -> Outcome:
    """Run what is pending and keep every finished point; Ctrl-C ends it in order. Points that only the
    machine makes suspect are retried as often as `retries` says, those stored earlier included.

    A point that fails is stored as failed and the sweep goes on. Raises StoreError when results
    cannot be kept, HostUnfitError when the machine turns out unfit, RunError when nobody is left to run
    points: going on would be in vain.
    """
    return _Sweep(list(jobs), crew, where, progress, force, retries).run()


class _Sweep:
    """State of one sweep: what is stored, how long points took, what failed beside a kept result."""

    def __init__(
        self,
        jobs: list[Job],
        crew: MakeCrew,
        where: Store,
        progress: Progress,
        force: bool,
        retries: Retries,
    ) -> None:
        self.jobs, self.crew, self.store, self.progress = jobs, crew, where, progress
        self.force, self.retries = force, retries
        self.cpu_bound = {job.name for job in jobs if job.cpu_bound}
        self.stored: dict[str, StoredPoint] = {}
        self.observed: dict[int, list[tuple[float, float]]] = {}
        """(expected, observed) seconds of finished jobs, by how many ran side by side."""
        self.left: list[Job] = []
        self.begun = self.total = 0
        self.places: dict[str, Place] = {}
        """Of the points that are running, by name."""
        self.failures: list[str] = []

    def run(self) -> Outcome:
        self._rescan(tell=True)
        entries = [point.entry for point in self.stored.values()]
        pending = pending_jobs(self.jobs, entries, self.force)
        again = [job for job in retry_jobs(self.jobs, entries, self.retries) if job not in pending]
        interrupted = False
        self.progress.begin(self.jobs, [*pending, *again])
        if not pending and not again and (line := _suspects(self.jobs, entries)):
            self.progress.note(line)
        try:
            if pending or again:
                self._carry_out(pending, again)
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
            columns.write(self.store, list(self.stored.values()))

    def _carry_out(self, pending: Sequence[Job], again: list[Job]) -> None:
        """Run what is pending, then what is to be retried, round by round, until no retry is left."""
        self.left = [*pending, *again]
        self.total = len(self.left)
        with self.crew(self.store, self.progress) as crew:
            again += self._round(crew, [self._order(job) for job in _longest_first(pending)])
            while again:
                again = self._round(crew, [self._retry(job) for job in _longest_first(again)])

    def _round(self, crew: Crew, orders: Sequence[Order]) -> list[Job]:
        """Carry out these orders; the jobs that are to be retried after them."""
        jobs = {job.name: job for job in self.jobs}
        again: list[Job] = []
        for told in crew.run(orders):
            job = jobs[point_name(told.order.spec)]
            if isinstance(told, Started):
                self._start(job, told)
            elif isinstance(told, Noted):
                self.progress.note(f"{job.name}: {told.text}")
            elif self._finish(job, told.order, told.done):
                again.append(job)
        return again

    def _start(self, job: Job, told: Started) -> None:
        self.begun += 1
        attempt = len(told.order.attempts) + 1
        place = Place(self.begun, self.total, self._eta_s(), told.worker, attempt)
        self.places[job.name] = place
        self.progress.start(job, place)

    def _eta_s(self) -> float:
        return sum(remaining_s(jobs, self.observed.get(at_once, ())) for at_once, jobs in _waves(self.left))

    def _order(self, job: Job) -> Order:
        earlier = self.stored.get(job.name)
        return Order(job.spec, job.rate.how, earlier is not None and earlier.finished)

    def _retry(self, job: Job) -> Order:
        """An order for another attempt at a stored point; its earlier ones go with it."""
        point = self.stored[job.name]
        sampling = job.spec.sampling.joined(point.spec.sampling)
        spec = dataclasses.replace(job.spec, sampling=sampling)
        return Order(spec, job.rate.how, True, point.runs)

    def _finish(self, job: Job, order: Order, done: Done) -> bool:
        """Keep what came of the order; whether the point is to be retried."""
        self.left.remove(job)
        self.observed.setdefault(job.at_once, []).append((job.expected_s, done.elapsed_s))
        self._keep(job, order, done)
        again = bool(retry_jobs([job], [self.stored[job.name].entry], self.retries))
        if again:
            self.left.append(job)
            self.total += 1
        columns.write(self.store, list(self.stored.values()))
        now = summary.judge(self.stored.values(), self.cpu_bound)
        judged = next(j for j in now if j.point.name == job.name)
        place = self.places.pop(job.name)
        told = dataclasses.replace(place, total=self.total, eta_s=self._eta_s(), again=again)
        self.progress.finish(judged, told)
        return again

    def _keep(self, job: Job, order: Order, done: Done) -> None:
        if done.point is not None:
            self.stored[job.name] = done.point
            if job.name in self.failures:
                self.failures.remove(job.name)
        elif order.attempts:
            self.stored[job.name] = self.store.note_attempt(self.stored[job.name], done.attempt)
        else:
            self.failures.append(job.name)
            self.progress.note(f"{job.name} failed ({texts(done.reasons)}); its earlier result is kept")
