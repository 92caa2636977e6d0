"""Progress that remembers what happened, in place of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.execute.sweep import SweepPosition
from harness.plan.jobs import Job
from harness.results.point_results import PointResult
from model.result import Status


class Recorder:
    """Record what started, what finished, and where; `at_start` is called with the place of each start."""

    def __init__(self, at_start: Callable[[SweepPosition], None] = lambda _: None) -> None:
        self.at_start = at_start
        self.events: list[tuple[str, int]] = []
        """`start`, the status at the end, with the index of the run; `end`."""
        self.workers: list[str] = []
        self.started: list[str] = []
        self.finished: list[tuple[str, Status]] = []
        self.notes: list[str] = []
        self.places: list[SweepPosition] = []
        self.pending = -1
        self.ended = 0

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        assert len(pending) <= len(jobs)
        self.pending = len(pending)

    def start(self, job: Job, place: SweepPosition) -> None:
        assert job.expected_s > 0
        self.events.append(("start", place.index))
        self.workers.append(place.worker)
        self.started.append(job.name)
        self.places.append(place)
        self.at_start(place)

    def finish(self, judged: PointResult, place: SweepPosition) -> None:
        assert judged.name in self.started and place.eta_s >= 0
        self.events.append((judged.status.value, place.index))
        self.finished.append((judged.name, judged.status))
        self.places.append(place)

    def phase(self, name: str, seconds: float) -> None:
        assert name
        assert seconds >= 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        self.events.append(("end", 0))
        self.ended += 1
