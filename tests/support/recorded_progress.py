"""Progress that remembers what happened, in place of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from harness.execute.sweep import SweepPosition
from harness.plan.jobs import Job
from harness.results.point_results import Judged
from model.result import Status


class Recorder:
    """Record what started, what finished, and where."""

    def __init__(self) -> None:
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
        self.started.append(job.name)
        self.places.append(place)

    def finish(self, judged: Judged, place: SweepPosition) -> None:
        assert self.started[-1] == judged.point.name
        self.finished.append((judged.point.name, judged.status))
        self.places.append(place)

    def phase(self, name: str, seconds: float) -> None:
        assert name
        assert seconds >= 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        self.ended += 1
