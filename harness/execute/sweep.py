"""Sweeps: run the points of a plan that are not finished yet, and keep every finished point.

The executor decides how many points run at a time. Points that only the machine makes suspect are run again
after all others, a limited number of times.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from common.errors import RefabricError, StoreError
from common.text import counted
from engines.engine import Observer
from harness.baseline import is_baseline
from harness.execute.executors import Executor, TaskNote, TaskStart
from harness.execute.point import Task, TaskEnd
from harness.metrics import summary_csv
from harness.plan.jobs import Job, pending_jobs, remaining_s, retry_jobs, waves_of
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import Scan, Store, point_name
from model.reasons import texts
from model.result import Status


@dataclass(frozen=True)
class SweepPosition:
    """A point's position in the sweep: run `index` (from 1) of `total`, retries included.

    `eta_s` is the expected time until all runs are done. `worker` names the machine that runs the point, and
    is empty for this one. `attempt` counts the runs of this point; `again` says that another one follows.
    """

    index: int
    total: int
    eta_s: float
    worker: str = ""
    attempt: int = 1
    again: bool = False


SUMMARY_EVERY_S = 2.0
"""A sweep rewrites summary.csv at most so often, and when it ends: hundreds of rows take 0.1 s."""
MakeExecutor = Callable[[Store, Observer], Executor]
"""Makes an executor that writes to the store and may send notes to the observer."""


class Progress(Observer, Protocol):
    """Receives the progress of a sweep and, as an Observer, that of its points."""

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        """The sweep starts; of its `jobs` those in `pending` will run."""

    def start(self, job: Job, place: SweepPosition) -> None:
        """A point starts."""

    def finish(self, judged: point_results.PointResult, place: SweepPosition) -> None:
        """A point is stored."""

    def end(self) -> None:
        """The sweep has ended, normally or not."""


@dataclass(frozen=True)
class SweepOutcome:
    """Every stored point of the plan, in plan order, and how the sweep ended."""

    points: tuple[point_results.PointResult, ...]
    stored: Scan
    """The content of the results folder after the sweep, for charts and the report."""
    planned: int
    failures: tuple[str, ...]
    """Names of points that failed (`--force`) and whose earlier, finished result was kept."""
    interrupted: bool

    @property
    def exit_code(self) -> int:
        """Return 0 if all are ok or suspect as intended, 1 if some are failed, suspect or missing, 130 if
        interrupted."""
        if self.interrupted:
            return 130
        good = sum(judged.status is Status.OK or judged.as_intended for judged in self.points)
        return 0 if good == self.planned and not self.failures else 1


def _retry_hint(jobs: Sequence[Job], stored: Sequence[PointResult]) -> str:
    """Return a line with the option that retries suspect points; empty if there are none."""
    names = {job.name for job in retry_jobs(jobs, stored, sys.maxsize)}
    if not names:
        return ""
    tries = max(entry.machine_attempts for entry in stored if entry.name in names)
    return (
        f"{counted(len(names), 'suspect point')}: --retry-suspect {tries} runs "
        f"{'it' if len(names) == 1 else 'them'} once more"
    )


def _longest_first(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs in the order to start them. Among jobs that run side by side, baselines come first,
    because all percentages need them, then the longest: a long job started last leaves other cores idle."""

    def order(job: Job) -> tuple[bool, float]:
        return not is_baseline(job.spec), -job.expected_s

    return sorted(jobs, key=lambda job: order(job) if job.at_once > 1 else (False, 0.0))


def run(
    jobs: Sequence[Job],
    executor: MakeExecutor,
    where: Store,
    found: Scan,
    progress: Progress,
    force: bool = False,
    retries: int | None = None,
) -> SweepOutcome:
    """Run the pending jobs and keep every finished point; Ctrl-C ends the sweep cleanly.

    `found` is the content of the results folder `where`; the sweep does not read that folder again.
    Points that only the machine makes suspect, also those stored earlier, are retried as often as `retries`
    says (`jobs.retry_jobs`). A point that fails is stored as failed, and the sweep continues. Raises
    StoreError if results cannot be stored, HostUnfitError if the machine proves unfit, RunError if no worker
    is left to run points.
    """
    return _Sweep(list(jobs), executor, where, found, progress, force, retries).run()


class _Sweep:
    """The state of one sweep: stored points, durations, failures beside a kept result."""

    def __init__(
        self,
        jobs: list[Job],
        executor: MakeExecutor,
        where: Store,
        found: Scan,
        progress: Progress,
        force: bool,
        retries: int | None,
    ) -> None:
        self.jobs, self.make_executor, self.store, self.progress = jobs, executor, where, progress
        self.force, self.retries = force, retries
        self.cpu_bound = {job.name for job in jobs if job.cpu_bound}
        self.found = found
        self.stored = {point.name: point for point in found.points}
        self.written: dict[str, PointResult] = {}
        """The points stored since `found`."""
        self.observed: dict[int, list[tuple[float, float]]] = {}
        """(expected, observed) seconds of finished jobs, by the number that ran side by side."""
        self.left: list[Job] = []
        self.started = self.total = 0
        self.places: dict[str, SweepPosition] = {}
        """Positions of the running points, by name."""
        self.failures: list[str] = []
        self.summary_due_s = 0.0
        """When summary.csv is to be written again, by the monotonic clock."""

    def run(self) -> SweepOutcome:
        for error in self.found.broken:
            self.progress.note(str(error))
        self._write_summary()
        entries = list(self.stored.values())
        pending = pending_jobs(self.jobs, entries, self.force)
        again = [job for job in retry_jobs(self.jobs, entries, self.retries) if job not in pending]
        interrupted = False
        self.progress.begin(self.jobs, [*pending, *again])
        if not pending and not again and (line := _retry_hint(self.jobs, entries)):
            self.progress.note(line)
        try:
            if pending or again:
                self._run_all(pending, again)
        except KeyboardInterrupt:
            interrupted = True
            self.store.clean_up()
            self._read_again()
        except RefabricError:
            with contextlib.suppress(StoreError):  # what ended the sweep is the error to show
                self._write_summary()
            raise
        finally:
            self.progress.end()
        judged = {j.name: j for j in point_results.judge(self.stored.values(), self.cpu_bound)}
        points = tuple(judged[job.name] for job in self.jobs if job.name in judged)
        stored = self.found.after(self.written)
        return SweepOutcome(points, stored, len(self.jobs), tuple(self.failures), interrupted)

    def _read_again(self) -> None:
        """Read the folder after Ctrl-C: a point may be renamed already and not be in the summary yet."""
        self.found, self.written = self.store.read(), {}
        self.stored = {point.name: point for point in self.found.points}
        self._write_summary()

    def _write_summary(self) -> None:
        if self.stored:
            summary_csv.write(self.store, list(self.stored.values()))
        self.summary_due_s = time.monotonic() + SUMMARY_EVERY_S

    def _run_all(self, pending: Sequence[Job], again: list[Job]) -> None:
        """Run the pending jobs, then the retries in rounds until none is left."""
        self.left = [*pending, *again]
        self.total = len(self.left)
        with self.make_executor(self.store, self.progress) as executor:
            again += self._round(executor, [self._task(job) for job in _longest_first(pending)])
            while again:
                again = self._round(executor, [self._retry(job) for job in _longest_first(again)])
        self._write_summary()

    def _round(self, executor: Executor, tasks: Sequence[Task]) -> list[Job]:
        """Run the tasks; return the jobs to retry afterwards."""
        jobs = {job.name: job for job in self.jobs}
        again: list[Job] = []
        for event in executor.run(tasks):
            job = jobs[point_name(event.task.spec)]
            if isinstance(event, TaskStart):
                self._start(job, event)
            elif isinstance(event, TaskNote):
                self.progress.note(f"{job.name}: {event.text}")
            elif self._finish(job, event):
                again.append(job)
        return again

    def _start(self, job: Job, event: TaskStart) -> None:
        self.started += 1
        attempt = len(event.task.attempts) + 1
        place = SweepPosition(self.started, self.total, self._eta_s(), event.worker, attempt)
        self.places[job.name] = place
        self.progress.start(job, place)

    def _eta_s(self) -> float:
        return sum(remaining_s(jobs, self.observed.get(at_once, ())) for at_once, jobs in waves_of(self.left))

    def _task(self, job: Job) -> Task:
        earlier = self.stored.get(job.name)
        return Task(job.spec, job.rate.how, earlier is not None and earlier.finished)

    def _retry(self, job: Job) -> Task:
        """Return the task of another attempt at a stored point, with the earlier attempts."""
        point = self.stored[job.name]
        sampling = job.spec.sampling.joined(point.spec.sampling)
        spec = dataclasses.replace(job.spec, sampling=sampling)
        return Task(spec, job.rate.how, True, point.attempts)

    def _finish(self, job: Job, end: TaskEnd) -> bool:
        """Keep the outcome of the task; return whether the point is to be retried."""
        self.left.remove(job)
        self.observed.setdefault(job.at_once, []).append((job.expected_s, end.attempt.elapsed_s))
        if end.point is not None:
            self._store(end.point)
            if job.name in self.failures:
                self.failures.remove(job.name)
        elif end.task.attempts:
            self._store(self.store.note_attempt(self.stored[job.name], end.attempt))
        else:
            self.failures.append(job.name)
            why = texts(end.attempt.reasons)
            self.progress.note(f"{job.name} failed ({why}); its earlier result is kept")
        again = bool(retry_jobs([job], [self.stored[job.name]], self.retries))
        if again:
            self.left.append(job)
            self.total += 1
        if time.monotonic() >= self.summary_due_s:
            self._write_summary()
        now = point_results.judge(self.stored.values(), self.cpu_bound)
        judged = next(j for j in now if j.name == job.name)
        place = self.places.pop(job.name)
        after = dataclasses.replace(place, total=self.total, eta_s=self._eta_s(), again=again)
        self.progress.finish(judged, after)
        return again

    def _store(self, point: PointResult) -> None:
        self.stored[point.name] = self.written[point.name] = point
