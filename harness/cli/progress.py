"""Show the progress of a sweep: a live line on a terminal, plain lines, or JSON lines.

JSON lines have a stream of their own; text for people then goes to the other one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import IO, Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from analysis.completion import ms_text
from common.text import three_digits
from harness import labels
from harness.baseline import is_baseline
from harness.execute.sweep import Progress, SweepPosition
from harness.metrics import summary_csv
from harness.plan.jobs import Job, wall_s
from harness.results import point_results, run_json
from harness.streams import Escaping, console_for, wrapped, write_json
from model.reasons import texts
from model.result import Status


def duration(seconds: float) -> str:
    """Return a duration as text: `8 s`, `4 min 10 s`, `2 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def verdict(judged: point_results.PointResult, place: SweepPosition) -> str:
    """Return the outcome of one run of a point, on one line."""
    runs = judged.attempts
    again = "; will run again at the end" if place.again else ""
    if place.attempt > 1 and run_json.counting_attempt(runs) < len(runs):
        kept = f"attempt {run_json.counting_attempt(runs)} of {len(runs)} counts"
        return f"attempt {place.attempt}: {runs[-1].status}: {texts(runs[-1].reasons)}; {kept}{again}"
    retried = f", {run_json.attempt_words(runs)}" if place.attempt > 1 else ""
    off = texts(runs[-1].reasons) if runs and runs[-1].status is Status.OK else ""
    state = ", ".join(filter(None, (_number(judged), _state(judged))))
    return f"{state}{f', but {off}' if off else ''}{again}{retried}"


def _number(judged: point_results.PointResult) -> str:
    goodput, pct = judged.goodput_mbps, judged.goodput_pct
    if goodput is None:
        return ""
    if judged.all_sized:
        took_ms = judged.metric("fct_ms_mean")
        mean = "" if took_ms is None else f", in {ms_text(took_ms)} on average"
        of = (judged.metric(f"flows_{what}") for what in ("completed", "started"))
        return f"{' of '.join(f'{count or 0:.0f}' for count in of)} flows completed{mean}"
    if pct is None or is_baseline(judged.spec):
        return f"{three_digits(goodput.mean)} Mb/s"
    return f"{pct.mean:.1f} % of optimal (slowest flow {pct.minimum:.1f})"


def _state(judged: point_results.PointResult) -> str:
    """Return `ok`, or the problem: `suspect: frames were late`; with the metrics that may be off."""
    if judged.reasons:
        return f"{judged.state}: {texts(judged.reasons)}"
    doubts = list(dict.fromkeys(name for caution in judged.cautions for name in caution.doubts))
    return f"{judged.state}, but {', '.join(doubts)} may be off" if doubts else judged.state


def opening(jobs: Sequence[Job], pending: Sequence[Job]) -> str:
    """Return the first line of a sweep: how many points, what they share, how long they take."""
    done = len(jobs) - len(pending)
    already = f", {done} already finished" if done else ""
    if not pending:
        return f"{len(jobs)} points, all finished already: nothing to run (--force repeats them)"
    alike = labels.shared([job.spec for job in jobs]).words
    head = f"{len(jobs)} points{already}{f': {alike}' if alike else ''}"
    return f"{head}; about {duration(wall_s(pending))} to go"


class PlainProgress:
    """Print a line when a point ends, without what all points share, and the engine's notes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = Escaping(stream)
        self._alike = labels.CommonLabels()
        self._ended = 0
        """How many runs have ended: points that run side by side do not end in the order of their start."""

    def _print(self, text: str, style: str = "", indent: int = 2) -> None:
        del style, indent
        print(text, file=self._stream, flush=True)

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        self._alike = labels.shared([job.spec for job in jobs])
        self._ended = 0
        self._print(opening(jobs, pending))

    def start(self, job: Job, place: SweepPosition) -> None:
        """Do nothing: a log has one line per point."""

    def phase(self, name: str, seconds: float) -> None:
        """Do nothing: phases would only make a log longer."""

    def note(self, text: str) -> None:
        self._print(f"  note: {text}", indent=8)

    def finish(self, judged: point_results.PointResult, place: SweepPosition) -> None:
        left = f"; {duration(place.eta_s)} left" if place.eta_s >= 1 else ""
        self._print(f"{self._finished(judged, place)}{left}")

    def _finished(self, judged: point_results.PointResult, place: SweepPosition) -> str:
        """Return the line of a run that has ended."""
        self._ended += 1
        on = f" on {place.worker}" if place.worker else ""
        head = f"[{self._ended}/{place.total}] {labels.beside(judged.spec, self._alike)}{on}"
        return f"{head}: {verdict(judged, place)}"

    def end(self) -> None:
        """Do nothing: nothing is open."""


class RichProgress(PlainProgress):
    """Print finished points, and below them one live line: bar, point, phase, time left.

    Before the first point the live line shows what is prepared, such as the trials of a calibration.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console.file)
        self._console = console
        self._live: Live | None = None
        self._running: dict[str, tuple[Job, float]] = {}
        """Running jobs and their start times, by name."""
        self._place = SweepPosition(0, 0, 0.0)
        self._heard_s = time.monotonic()
        self._phase = ""
        self._phase_s = 0.0
        self._phase_began = time.monotonic()
        self._done_s = self._total_s = 0.0

    def begin(self, jobs: Sequence[Job], pending: Sequence[Job]) -> None:
        self.end()
        super().begin(jobs, pending)
        self._total_s = sum(job.expected_s for job in pending)
        if pending:
            self._show()

    def _show(self) -> None:
        self._live = Live(self, console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def _print(self, text: str, style: str = "", indent: int = 2) -> None:
        for line in wrapped(text, self._console.width, indent):
            self._console.print(Text(line, style), soft_wrap=True)

    def start(self, job: Job, place: SweepPosition) -> None:
        self._place, self._phase, self._heard_s = place, "", time.monotonic()
        self._running[job.name] = job, self._heard_s

    def phase(self, name: str, seconds: float) -> None:
        self._phase, self._phase_s, self._phase_began = name, seconds, time.monotonic()
        if self._live is None:
            self._show()

    def finish(self, judged: point_results.PointResult, place: SweepPosition) -> None:
        job, _ = self._running.pop(judged.name, (None, 0.0))
        self._done_s += job.expected_s if job else 0.0
        self._total_s += job.expected_s if job and place.again else 0.0
        self._place, self._heard_s = place, time.monotonic()
        colour = {Status.OK: "green", Status.SUSPECT: "yellow", Status.FAILED: "red"}[judged.status]
        self._print(self._finished(judged, place), colour)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._phase = ""

    def __rich__(self) -> Table:
        """Return the live line as of now; rich calls this four times per second."""
        now = time.monotonic()
        if not self._place.total:  # before the first point
            line = Table.grid(padding=(0, 1))
            done_s = min(now - self._phase_began, self._phase_s)
            line.add_row(ProgressBar(max(self._phase_s, 1e-9), done_s, width=10), self._doing(now))
            return line
        done_s = sum(min(now - began, job.expected_s) for job, began in self._running.values())
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(max(self._total_s, 1e-9), self._done_s + done_s, width=10)
        phase = self._doing(now)
        latest = next(reversed(self._running.values()), None)
        what = labels.beside(latest[0].spec, self._alike) if latest else ""
        others = len(self._running) - 1
        phase = f"and {others} more" if others > 0 else phase
        left_s = self._place.eta_s - (now - self._heard_s)
        left = f"{duration(left_s)} left" if left_s >= 1 else "longer than expected"
        for _ in range(5):
            line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(bar, f"[{self._ended}/{self._place.total}]", what, phase, left)
        return line

    def _doing(self, now: float) -> str:
        """Return `measure 12 s of 20 s`."""
        if not self._phase:
            return ""
        of = f" of {duration(self._phase_s)}" if self._phase_s else ""
        return f"{self._phase} {duration(now - self._phase_began)}{of}"


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

    def start(self, job: Job, place: SweepPosition) -> None:
        self.emit("start", point=job.name, **_where(place), expected_s=round(job.expected_s, 1))
        self._human.start(job, place)

    def phase(self, name: str, seconds: float) -> None:
        self.emit("phase", phase=name, expected_s=seconds)
        self._human.phase(name, seconds)

    def note(self, text: str) -> None:
        self.emit("note", text=text)
        self._human.note(text)

    def finish(self, judged: point_results.PointResult, place: SweepPosition) -> None:
        fields = point_fields(self._experiment, judged)
        run = {
            "attempt": place.attempt,
            "again": place.again,
            "elapsed_s": judged.attempts[-1].elapsed_s,
        }
        self.emit("point", **_where(place), **run, **fields)
        self._human.finish(judged, place)

    def end(self) -> None:
        self._human.end()


def point_fields(experiment: str, judged: point_results.PointResult) -> dict[str, Any]:
    """Return a point as fields for JSON.

    These are its name, the columns of summary.csv, and reasons, cautions and attempts as records.
    """
    records = {
        "reason_records": [reason.to_json() for reason in judged.reasons],
        "caution_records": [caution.to_json() for caution in judged.cautions],
        "attempt_records": [attempt.to_json() for attempt in judged.attempts],
    }
    return {"point": judged.name, **summary_csv.record(experiment, judged), **records}


def _where(place: SweepPosition) -> dict[str, Any]:
    worker = {"worker": place.worker} if place.worker else {}
    return {"index": place.index, "total": place.total, "eta_s": round(place.eta_s, 1), **worker}


def for_stream(stream: IO[str]) -> Progress:
    """Return the progress for people that suits `stream`: live on a terminal, else plain lines."""
    return RichProgress(console_for(stream)) if stream.isatty() else PlainProgress(stream)
