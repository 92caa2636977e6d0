"""Show the progress of a sweep: a live line on a terminal, plain lines, or JSON lines.

JSON lines have a stream of their own; text for people then goes to the other one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import IO, Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from harness.execute import attempts
from harness.execute.sweep import Job, Place, Progress, wall_s
from harness.plan import labels
from harness.plan.baseline import is_reference
from harness.plan.labels import label
from harness.plan.rate import named
from harness.results import columns, summary
from harness.streams import write_json
from model.reasons import texts
from model.result import Status
from model.spec import RunSpec


def duration(seconds: float) -> str:
    """Return a duration as text: `8 s`, `4 min 10 s`, `2 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def verdict(judged: summary.Judged, place: Place) -> str:
    """Return the outcome of one run of a point, on one line."""
    runs = judged.point.attempts
    again = "; will run again at the end" if place.again else ""
    if place.attempt > 1 and attempts.counting(runs) < len(runs):
        kept = f"attempt {attempts.counting(runs)} of {len(runs)} counts"
        return f"attempt {place.attempt}: {runs[-1].status}: {texts(runs[-1].reasons)}; {kept}{again}"
    retried = f", {attempts.words(runs)}" if place.attempt > 1 else ""
    off = texts(runs[-1].reasons) if runs and runs[-1].status is Status.OK else ""
    told = ", ".join(filter(None, (_number(judged), _told(judged))))
    return f"{told}{f', but {off}' if off else ''}{again}{retried}"


def _number(judged: summary.Judged) -> str:
    goodput, pct = judged.goodput_mbps, judged.goodput_pct
    if goodput is None:
        return ""
    if pct is None or is_reference(judged.spec):
        return f"{goodput.mean:.3g} Mb/s"
    return f"{pct.mean:.1f} % of optimal (slowest flow {pct.minimum:.1f})"


def _told(judged: summary.Judged) -> str:
    """Return `ok`, or the problem: `suspect: frames were late`; with the metrics that may be off."""
    if judged.reasons:
        return f"{judged.state}: {texts(judged.reasons)}"
    doubts = list(dict.fromkeys(name for caution in judged.cautions for name in caution.doubts))
    return f"{judged.state}, but {', '.join(doubts)} may be off" if doubts else judged.state


def opening(jobs: Sequence[Job], pending: Sequence[Job]) -> str:
    """Return the first line of a sweep."""
    done = len(jobs) - len(pending)
    already = f", {done} already finished" if done else ""
    if not pending:
        return f"{len(jobs)} points, all finished already: nothing to run (--force repeats them)"
    return f"{len(jobs)} points{already}; about {duration(wall_s(pending))} to go"


class PlainProgress:
    """Print a line when a point starts, one when it ends, and the engine's notes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        self._say(opening(jobs, pending))

    def start(self, job: Job, place: Place) -> None:
        left = duration(place.eta_s)
        self._say(f"[{place.index}/{place.total}] {label(job.spec)}{_on(place)} ... ({left} left)")

    def phase(self, name: str, seconds: float) -> None:
        """Do nothing: phases would only make a log longer."""

    def note(self, text: str) -> None:
        self._say(f"  note: {text}")

    def finish(self, judged: summary.Judged, place: Place) -> None:
        took = duration(judged.point.runs[-1].elapsed_s)
        self._say(
            f"[{place.index}/{place.total}] {label(judged.spec)}: {verdict(judged, place)}, took {took}"
        )

    def end(self) -> None:
        """Do nothing: nothing is open."""


class RichProgress:
    """Print finished points, and below them one live line: bar, point, phase, time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._running: dict[str, tuple[Job, float]] = {}
        """Running jobs and their start times, by name."""
        self._place = Place(0, 0, 0.0)
        self._told = time.monotonic()
        self._phase = ""
        self._phase_s = 0.0
        self._phase_began = time.monotonic()
        self._done_s = self._total_s = 0.0

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        self._console.print(opening(jobs, pending), highlight=False)
        self._total_s = sum(job.expected_s for job in pending)
        if pending:
            self._live = Live(self, console=self._console, refresh_per_second=4, transient=True)
            self._live.start()

    def start(self, job: Job, place: Place) -> None:
        self._place, self._phase, self._told = place, "", time.monotonic()
        self._running[job.name] = job, self._told

    def phase(self, name: str, seconds: float) -> None:
        self._phase, self._phase_s, self._phase_began = name, seconds, time.monotonic()

    def note(self, text: str) -> None:
        self._console.print(f"  note: {text}", highlight=False, markup=False)

    def finish(self, judged: summary.Judged, place: Place) -> None:
        job, _ = self._running.pop(judged.point.name, (None, 0.0))
        self._done_s += job.expected_s if job else 0.0
        self._total_s += job.expected_s if job and place.again else 0.0
        self._place, self._told = (
            dataclasses.replace(place, index=max(place.index, self._place.index)),
            time.monotonic(),
        )
        colour = {Status.OK: "green", Status.SUSPECT: "yellow", Status.FAILED: "red"}[judged.status]
        self._console.print(
            f"[{place.index}/{place.total}] {label(judged.spec)}{_on(place)}: {verdict(judged, place)}",
            style=colour,
            highlight=False,
            markup=False,
        )

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __rich__(self) -> Table:
        """Return the live line as of now; rich calls this four times per second."""
        now = time.monotonic()
        done_s = sum(min(now - began, job.expected_s) for job, began in self._running.values())
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(max(self._total_s, 1e-9), self._done_s + done_s, width=10)
        phase = f"{self._phase} {duration(now - self._phase_began)}" if self._phase else ""
        if self._phase_s:
            phase += f" of {duration(self._phase_s)}"
        latest = next(reversed(self._running.values()), None)
        what = _live_label(latest[0].spec) if latest else ""
        others = len(self._running) - 1
        phase = f"and {others} more" if others > 0 else phase
        left = duration(self._place.eta_s - (now - self._told))
        line.add_row(bar, f"[{self._place.index}/{self._place.total}]", what, phase, f"{left} left")
        return line


def _on(place: Place) -> str:
    return f" on {place.worker}" if place.worker else ""


def _live_label(spec: RunSpec) -> str:
    """Return a short label: bar, point, phase and time left share a line of 80 columns."""
    if is_reference(spec):
        return f"{named(spec.topology)} baseline"
    return f"{named(spec.topology)} {labels.transport(spec)} seed {spec.seed}"


class JsonProgress:
    """Print one JSON object per line: `begin`, `start`, `phase`, `note`, `point`. Text for people goes to
    `human`."""

    def __init__(self, stream: IO[str], human: Progress, experiment: str) -> None:
        self._stream, self._human, self._experiment = stream, human, experiment

    def emit(self, event: str, **fields: Any) -> None:
        """Write one object."""
        write_json(self._stream, {"event": event, **fields})

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        expected_s = wall_s(pending)
        self.emit("begin", points=len(jobs), pending=len(pending), expected_s=round(expected_s, 1))
        self._human.begin(jobs, pending)

    def start(self, job: Job, place: Place) -> None:
        self.emit("start", point=job.name, **_where(place), expected_s=round(job.expected_s, 1))
        self._human.start(job, place)

    def phase(self, name: str, seconds: float) -> None:
        self.emit("phase", phase=name, expected_s=seconds)
        self._human.phase(name, seconds)

    def note(self, text: str) -> None:
        self.emit("note", text=text)
        self._human.note(text)

    def finish(self, judged: summary.Judged, place: Place) -> None:
        fields = point_fields(self._experiment, judged)
        run = {"attempt": place.attempt, "again": place.again, "elapsed_s": judged.point.runs[-1].elapsed_s}
        self.emit("point", **_where(place), **run, **fields)
        self._human.finish(judged, place)

    def end(self) -> None:
        self._human.end()


def point_fields(experiment: str, judged: summary.Judged) -> dict[str, Any]:
    """Return a point as fields for JSON.

    These are its name, the columns of summary.csv, and reasons, cautions and attempts as records.
    """
    records = {
        "reason_records": [reason.to_json() for reason in judged.reasons],
        "caution_records": [caution.to_json() for caution in judged.cautions],
        "attempt_records": [attempt.to_json() for attempt in judged.point.runs],
    }
    return {"point": judged.point.name, **columns.record(experiment, judged), **records}


def _where(place: Place) -> dict[str, Any]:
    worker = {"worker": place.worker} if place.worker else {}
    return {"index": place.index, "total": place.total, "eta_s": round(place.eta_s, 1), **worker}


def for_stream(stream: IO[str]) -> Progress:
    """Return the progress for people that suits `stream`: live on a terminal, else plain lines."""
    return RichProgress(Console(file=stream)) if stream.isatty() else PlainProgress(stream)
